"""SPARQL: one CONSTRUCT for all rules, or one INSERT for each.

SHACL rules (SHACL Advanced Features), in Turtle: a shape with a `sh:SPARQLRule` for each rule.
"""

from __future__ import annotations

from dataclasses import replace

from anyburl.data.terms import is_blank_node, rdf_term
from anyburl.rules.rule import Atom, Constant, Term, Variable
from anyburl.tools.export.clause import Clause, Writer
from anyburl.tools.export.options import ExportOptions


class RdfWriter(Writer):
    """What SPARQL and SHACL have in common."""

    comment = "#"

    def fault(self, clause: Clause) -> str | None:
        """No query can name a blank node: in a pattern it is a variable."""
        blank = any(map(is_blank_node, [*clause.constants, *clause.relations]))
        return "names a blank node, which no query can" if blank else super().fault(clause)

    def pattern(self, clause: Clause, indent: str = "  ") -> str:
        """Return the body: a line for each atom and a line for each inequality."""
        atoms = [f"{self.triple(atom)} ." for atom in clause.body]
        # sameTerm compares terms; != compares values, and is an error for literals of unknown types.
        filters = [f"FILTER(!sameTerm({self.term(a)}, {self.term(b)}))" for a, b in clause.different]
        return "".join(f"{indent}{line}\n" for line in (*atoms, *filters))

    def triple(self, atom: Atom) -> str:
        """Return an atom."""
        subject, object = self.term(atom.subject, is_object=False), self.term(atom.object)
        return f"{subject} {self.relation(atom)} {object}"

    def relation(self, atom: Atom) -> str:
        """Return the relation of an atom."""
        return rdf_term(atom.relation, is_object=False, is_relation=True, base=self.options.base)

    def term(self, term: Term, *, is_object: bool = True) -> str:
        """Return a variable or an entity."""
        if isinstance(term, Constant):
            return rdf_term(term.label, is_object=is_object, base=self.options.base)
        return self.variable(term)

    def variable(self, variable: Variable) -> str:
        """Return a variable."""
        return f"?{variable}"


class SparqlQuery(RdfWriter):
    """One CONSTRUCT: a file holds a single query."""

    between = "  UNION\n"

    def begin(self) -> str:
        return "CONSTRUCT { ?subject ?relation ?object }\nWHERE {\n"

    def write(self, clause: Clause) -> str:
        head = clause.head
        bindings = {
            "subject": self.term(head.subject, is_object=False),
            "relation": self.relation(head),
            "object": self.term(head.object),
        }
        bound = "".join(f"    BIND({term} AS ?{name})\n" for name, term in bindings.items())
        return f"  {self.remark(clause)}  {{\n{self.pattern(clause, '    ')}{bound}  }}\n"

    def end(self) -> str:
        return "}\n"


class SparqlUpdate(RdfWriter):
    """One INSERT a rule, into a graph of its own, so that no rule sees what another has inserted."""

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        self._graph = options.target or f"{options.base}predictions"

    def write(self, clause: Clause) -> str:
        template = f"INSERT {{ GRAPH <{self._graph}> {{ {self.triple(clause.head)} }} }}\n"
        return f"{self.remark(clause)}{template}WHERE {{\n{self.pattern(clause)}}} ;\n"


def sparql_writer(options: ExportOptions) -> Writer:
    """Return the writer of queries or of updates."""
    return SparqlUpdate(options) if options.insert else SparqlQuery(options)


FOCUS = Variable("this")
SHAPE = """\
[] a sh:NodeShape ;
  sh:{target} {relation} ;
  sh:rule [
    a sh:SPARQLRule ;
    sh:construct \"\"\"
{query}\"\"\"
  ] .
"""


class ShaclWriter(RdfWriter):
    """The focus nodes of a shape are what the variable may stand for where the body's path starts."""

    def begin(self) -> str:
        return "@prefix sh: <http://www.w3.org/ns/shacl#> .\n\n"

    def write(self, clause: Clause) -> str:
        first = clause.body[0]
        target = "targetSubjectsOf" if first.subject == clause.start else "targetObjectsOf"
        focused = _focused(clause)
        query = f"CONSTRUCT {{ {self.triple(focused.head)} }}\nWHERE {{\n{self.pattern(focused)}}}\n"
        quoted = query.replace("\\", "\\\\").replace('"', '\\"')
        return self.remark(clause) + SHAPE.format(target=target, relation=self.relation(first), query=quoted)

    def variable(self, variable: Variable) -> str:
        return "$this" if variable == FOCUS else super().variable(variable)


def _focused(clause: Clause) -> Clause:
    """Return a clause whose path starts at the focus node."""

    def rename(term: Term) -> Term:
        return FOCUS if term == clause.start else term

    def move(atom: Atom) -> Atom:
        return Atom(atom.relation, rename(atom.subject), rename(atom.object))

    different = tuple((rename(first), rename(second)) for first, second in clause.different)
    return replace(clause, head=move(clause.head), body=tuple(map(move, clause.body)), different=different)
