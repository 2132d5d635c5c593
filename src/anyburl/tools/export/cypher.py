"""Cypher over a property graph: a MATCH for each rule, which returns predictions or merges them into the graph."""

from __future__ import annotations

from anyburl.rules.rule import Atom, Constant, Term
from anyburl.tools.export.clause import Clause, Writer
from anyburl.tools.export.options import ExportOptions


class CypherWriter(Writer):
    """Entities are nodes with a property for their label, relations are types of relationships."""

    comment = "//"

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        self._label = f":{_symbol(options.node_label)}" if options.node_label else ""
        self._key = _symbol(options.key)

    def write(self, clause: Clause) -> str:
        # A clause of its own for each atom: within one, two relationships would have to be different ones.
        lines = [f"MATCH {self._pattern(atom)}" for atom in clause.body]
        different = [f"{self._value(first)} <> {self._value(second)}" for first, second in clause.different]
        if different:
            lines.append(f"WHERE {' AND '.join(different)}")
        lines += self._merge(clause) if self.options.insert else [self._return(clause.head)]
        return self.remark(clause) + "\n".join(lines) + ";\n"

    def _return(self, head: Atom) -> str:
        subject, object = self._value(head.subject), self._value(head.object)
        return f"RETURN DISTINCT {subject} AS subject, {_text(head.relation)} AS relation, {object} AS object"

    def _merge(self, clause: Clause) -> list[str]:
        head = clause.head
        nodes = {"subject": head.subject, "object": head.object}
        named = [f"MERGE ({name}{self._entity(term)})" for name, term in nodes.items() if isinstance(term, Constant)]
        ends = [name if isinstance(term, Constant) else str(term) for name, term in nodes.items()]
        fact = f"MERGE ({ends[0]})-[fact:{_symbol(head.relation)}]->({ends[1]})"
        return [*named, fact, f"ON CREATE SET fact.confidence = {clause.scores.confidence!r}"]

    def _pattern(self, atom: Atom) -> str:
        return f"{self._node(atom.subject)}-[:{_symbol(atom.relation)}]->{self._node(atom.object)}"

    def _node(self, term: Term) -> str:
        return f"({self._entity(term)})" if isinstance(term, Constant) else f"({term}{self._label})"

    def _entity(self, constant: Constant) -> str:
        return f"{self._label} {{{self._key}: {_text(constant.label)}}}"

    def _value(self, term: Term) -> str:
        return _text(term.label) if isinstance(term, Constant) else f"{term}.{self._key}"


def _text(label: str) -> str:
    """Quote a label; a line break stands as it is, since not all systems read one as an escape."""
    return "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _symbol(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
