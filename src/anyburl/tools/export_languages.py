"""Rules in other languages: SPARQL, SHACL, SQL, Cypher, Datalog and Prolog; a `Writer` each."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import ClassVar

from anyburl.data.attributes import AttributeKind
from anyburl.data.terms import is_blank_node, rdf_term
from anyburl.rules.rule import Atom, Constant, Rule, Term, Variable
from anyburl.tools.options import ExportOptions

VALUE, OTHER = Variable("Value"), Variable("Other")
"""Of the attribute that a condition is on; the second is what a comparison compares the first with."""

QUOTED_BOUND = re.compile(r"""["']?\{bound\}["']?""")

ANYTHING = Variable("_")
"""Any entity: the other end of the fact that makes a rule without a body fire."""

Pair = tuple[Term, Term]


@dataclass(frozen=True, slots=True)
class Scores:
    """The counts and the confidence of a rule."""

    predictions: int
    support: int
    confidence: float
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule over variables and entities: b(A,self) is b(A,A), and `different` are the pairs of terms that differ.

    Under object identity every two terms differ, otherwise none have to; pairs of entities, which differ anyway, are
    left out. The value that a condition is on is the object of its last atom, `VALUE`; those that are compared are the
    objects of the last two, `VALUE` and `OTHER`.
    """

    rule: Rule
    scores: Scores
    head: Atom
    body: tuple[Atom, ...]
    different: tuple[Pair, ...]

    @property
    def start(self) -> Variable:
        """The variable where the body's path starts."""
        return self.rule.variable

    @property
    def constants(self) -> list[str]:
        """The labels of the entities that the rule names."""
        terms = (term for atom in (self.head, *self.body) for term in (atom.subject, atom.object))
        return list(dict.fromkeys(term.label for term in terms if isinstance(term, Constant)))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of the body that are facts, not values."""
        return tuple(atom for atom in self.body if atom.object not in (VALUE, OTHER))

    @property
    def values(self) -> tuple[Variable, ...]:
        """The variables that stand for values."""
        return tuple(value for value in (VALUE, OTHER) if any(atom.object == value for atom in self.body))

    def comparisons(self, number: str, date: str, truth: str, other: str) -> list[str]:
        """Return what the value has to satisfy: templates of a comparison of numbers, dates and booleans are filled
        with `operator` and `bound`, which is `other` where two values are compared.
        """
        condition = self.rule.condition
        if condition is None:
            return []
        template = {AttributeKind.NUMBER: number, AttributeKind.DATE: date, AttributeKind.BOOLEAN: truth}[
            condition.kind
        ]
        texts = []
        for operator, bound in condition.bounds:
            written = template.replace("{operator}", operator)
            is_compared = condition.than is not None
            texts.append(
                QUOTED_BOUND.sub(lambda _: other, written) if is_compared else written.replace("{bound}", bound)
            )
        return texts

    @property
    def relations(self) -> list[str]:
        """The labels of its relations."""
        return list(dict.fromkeys(atom.relation for atom in (self.head, *self.body)))


def make_clause(rule: Rule, scores: Scores, *, object_identity: bool = True) -> Clause:
    """Return a rule as a clause."""
    head, atoms = _without_self(rule.head), tuple(map(_without_self, rule.body))
    conditions = (part for part in rule.parts if part.is_value)
    values = [Atom(one.relation, *ends) for one in conditions for ends in zip(one.terms, (VALUE, OTHER), strict=False)]
    # h(X,c) <= predicts for every X that is a subject of h, whatever the object is.
    different = _pairs(_terms((*atoms, head))) if object_identity else ()
    return Clause(rule, scores, head, (*atoms, *values) or (_about_anything(rule),), different)


def _without_self(atom: Atom) -> Atom:
    """Write b(A,self) as b(A,A)."""
    subject, object = atom.subject, atom.object
    if isinstance(object, Constant) and object.is_self:
        return Atom(atom.relation, subject, subject)
    return Atom(atom.relation, object, object) if isinstance(subject, Constant) and subject.is_self else atom


def _about_anything(rule: Rule) -> Atom:
    head = rule.head
    if isinstance(head.subject, Variable):
        return Atom(head.relation, head.subject, ANYTHING)
    return Atom(head.relation, ANYTHING, head.object)


def _terms(atoms: tuple[Atom, ...]) -> list[Term]:
    return list(dict.fromkeys(term for atom in atoms for term in (atom.subject, atom.object)))


def _pairs(terms: list[Term]) -> tuple[Pair, ...]:
    """Return every two terms except two entities; a variable comes first."""
    pairs = (pair if isinstance(pair[0], Variable) else pair[::-1] for pair in combinations(terms, 2))
    return tuple((first, second) for first, second in pairs if isinstance(first, Variable))


class Writer(ABC):
    """Writes rules in one language: `begin`, every rule with `between` in between, `end`."""

    comment: ClassVar[str]
    """The start of a comment that ends with the line."""

    between: ClassVar[str] = "\n"

    def __init__(self, options: ExportOptions) -> None:
        self.options = options

    def begin(self) -> str:
        """Return the text before the rules."""
        return ""

    @abstractmethod
    def write(self, clause: Clause) -> str:
        """Return a rule, with a remark before it."""

    def end(self) -> str:
        """Return the text after the rules."""
        return ""

    def fault(self, clause: Clause) -> str | None:
        """Return why the language cannot express a rule, None if it can."""
        form = clause.rule.type.form
        return None if form.says_its_atoms else f"is {form.title}, which is not what its atoms say"

    def remark(self, clause: Clause) -> str:
        """Return the text of a rule and its scores as a comment, which no label can end.

        It ends in a bracket, since Soufflé continues a line after a backslash; escapes are broken up, since SPARQL and
        Cypher turn that of a line break into the character before they look for comments.
        """
        scores = clause.scores
        counts = f"{scores.support} of {'' if scores.exact else '~'}{scores.predictions}"
        text = " ".join(str(clause.rule).splitlines()).replace("\\u", "\\ u").replace("\\U", "\\ U")
        return f"{self.comment} {text}  [confidence {scores.confidence:.6g}, {counts}]\n"


class ClauseWriter(Writer):
    """Datalog and Prolog: a rule is a clause of `predicted` over facts of `triple`, without other predictions."""

    differs: ClassVar[str]

    @abstractmethod
    def quoted(self, label: str) -> str:
        """Return a label as the language writes it."""

    @abstractmethod
    def bounds(self, clause: Clause) -> list[str]:
        """Return the goals that the value of a condition has to satisfy."""

    def write(self, clause: Clause) -> str:
        terms = [term for atom in (clause.head, *clause.body) for term in (atom.subject, atom.object)]
        terms += [term for pair in clause.different for term in pair]
        terms += clause.values
        names = {term: self._term(term, is_alone=terms.count(term) == 1) for term in terms}

        def arguments(atom: Atom) -> str:
            return f"({names[atom.subject]}, {self.quoted(atom.relation)}, {names[atom.object]})"

        goals = [f"triple{arguments(atom)}" for atom in clause.body]
        goals += [f"{names[first]} {self.differs} {names[second]}" for first, second in clause.different]
        goals += self.bounds(clause)
        body = ",\n  ".join(goals)
        return f"{self.remark(clause)}predicted{arguments(clause.head)} :-\n  {body}.\n"

    def _term(self, term: Term, *, is_alone: bool) -> str:
        """Return a term; a variable that occurs once is anonymous."""
        if isinstance(term, Constant):
            return self.quoted(term.label)
        return str(ANYTHING if is_alone else term)


DATALOG_DECLARATIONS = """\
.decl triple(subject: symbol, relation: symbol, object: symbol)
.input triple
.decl predicted(subject: symbol, relation: symbol, object: symbol)
.output predicted

"""
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class DatalogWriter(ClauseWriter):
    """Datalog of Soufflé."""

    comment = "//"
    differs = "!="

    def begin(self) -> str:
        return DATALOG_DECLARATIONS

    def bounds(self, clause: Clause) -> list[str]:
        number = 'to_float(Value) {operator} to_float("{bound}")'
        return clause.comparisons(number, 'Value {operator} "{bound}"', 'Value {operator} "{bound}"', str(OTHER))

    def quoted(self, label: str) -> str:
        return '"' + "".join(ESCAPES.get(character, character) for character in label) + '"'


PROLOG_DECLARATIONS = """\
:- encoding(utf8).
:- multifile triple/3.
:- dynamic triple/3, predicted/3.

"""


class PrologWriter(ClauseWriter):
    """Prolog of SWI-Prolog; labels are atoms."""

    comment = "%"
    differs = "\\=="

    def begin(self) -> str:
        return PROLOG_DECLARATIONS

    def bounds(self, clause: Clause) -> list[str]:
        condition = clause.rule.condition
        is_number = condition is not None and condition.kind is AttributeKind.NUMBER
        other = "Number2" if is_number else str(OTHER)
        texts = clause.comparisons(
            "Number1 {operator} {bound}", "Value @{operator} '{bound}'", "Value = {bound}", other
        )
        texts = [one.replace(" = ", " =:= " if is_number else " == ").replace(" @= ", " == ") for one in texts]
        read = [f"atom_number({value}, Number{position})" for position, value in enumerate(clause.values, 1)]
        return [*read, *texts] if is_number else texts

    def quoted(self, label: str) -> str:
        """Quote a label; control characters are written by their numbers."""
        return "'" + "".join(map(_prolog_character, label)) + "'"


def _prolog_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


class CypherWriter(Writer):
    """Cypher: a MATCH for each rule, which returns predictions or merges them into the graph.

    Entities are nodes with a property for their label, relations are types of relationships.
    """

    comment = "//"

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        self._label = f":{_symbol(options.node_label)}" if options.node_label else ""
        self._key = _symbol(options.key)

    def write(self, clause: Clause) -> str:
        # A clause of its own for each atom: within one, two relationships would have to be different ones.
        condition = clause.rule.condition
        lines = [f"MATCH {self._pattern(atom)}" for atom in clause.atoms] or [f"MATCH {self._node(clause.start)}"]
        conditions = [f"{self._value(first)} <> {self._value(second)}" for first, second in clause.different]
        if condition is not None:  # values are properties of nodes
            value, other = (f"{one}.{_symbol(condition.attribute)}" for one in (condition.variable, condition.than))
            bounds = clause.comparisons(
                "Value {operator} {bound}", "date(Value) {operator} date('{bound}')", "Value = {bound}", "Other"
            )
            conditions += [bound.replace("Value", value, 1).replace("Other", other, 1) for bound in bounds]
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        lines += self._merge(clause) if self.options.insert else [self._return(clause.head)]
        return self.remark(clause) + "\n".join(lines) + ";\n"

    def _return(self, head: Atom) -> str:
        subject, object = self._value(head.subject), self._value(head.object)
        return f"RETURN DISTINCT {subject} AS subject, {_cypher_text(head.relation)} AS relation, {object} AS object"

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
        return f"{self._label} {{{self._key}: {_cypher_text(constant.label)}}}"

    def _value(self, term: Term) -> str:
        return _cypher_text(term.label) if isinstance(term, Constant) else f"{term}.{self._key}"


def _cypher_text(label: str) -> str:
    """Quote a label; a line break is not escaped, since not all systems read such an escape."""
    return "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _symbol(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class RdfWriter(Writer):
    """SPARQL and SHACL."""

    comment = "#"

    def fault(self, clause: Clause) -> str | None:
        """Refuse blank nodes, which are variables in a query."""
        blank = any(map(is_blank_node, [*clause.constants, *clause.relations]))
        return "names a blank node, which no query can" if blank else super().fault(clause)

    def pattern(self, clause: Clause, indent: str = "  ") -> str:
        """Return the body: a line for each atom and a line for each inequality."""
        atoms = [f"{self.triple(atom)} ." for atom in clause.body]
        # sameTerm compares terms; != compares values, and is an error for literals of unknown types.
        filters = [f"FILTER(!sameTerm({self.term(a)}, {self.term(b)}))" for a, b in clause.different]
        is_date = clause.rule.condition is not None and clause.rule.condition.kind is AttributeKind.DATE
        bounds = clause.comparisons(
            "?Value {operator} {bound}",
            'STR(?Value) {operator} "{bound}"',
            "?Value = {bound}",
            "STR(?Other)" if is_date else "?Other",
        )
        filters += [f"FILTER({bound})" for bound in bounds]
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
    """SPARQL: one CONSTRUCT for all rules, since a file holds a single query."""

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
    """SPARQL: one INSERT a rule, into a graph of its own, so that no rule sees what another has inserted."""

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
    """SHACL rules in Turtle: a shape with a `sh:SPARQLRule` for each rule; focus nodes are where the path starts."""

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


PREDICTIONS = "predictions"
CONFIDENCE = "confidence"


class SqlWriter(Writer):
    """SQL: a SELECT for each rule, or an INSERT into a table of predictions; an atom is a row of triples."""

    comment = "--"

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        self._table = _sql_name(options.table)
        self._target = _sql_name(options.target or PREDICTIONS)
        self._columns = [_identifier(column) for column in options.columns]

    def begin(self) -> str:
        if not self.options.insert:
            return ""
        columns = [*(f"{column} text" for column in self._columns), f"{_identifier(CONFIDENCE)} double precision"]
        return f"CREATE TABLE IF NOT EXISTS {self._target} ({', '.join(columns)});\n\n"

    def write(self, clause: Clause) -> str:
        return f"{self.remark(clause)}{self._insert()}{self._select(clause)};\n"

    def _insert(self) -> str:
        if not self.options.insert:
            return ""
        return f"INSERT INTO {self._target} ({', '.join(self._columns)}, {_identifier(CONFIDENCE)})\n"

    def _select(self, clause: Clause) -> str:
        columns, conditions = self._columns_of(clause)
        head = (
            _sql_value(clause.head.subject, columns),
            _sql_text(clause.head.relation),
            _sql_value(clause.head.object, columns),
        )
        shown = [f"{value} AS {column}" for value, column in zip(head, self._columns, strict=True)]
        if self.options.insert:
            shown.append(f"{clause.scores.confidence!r} AS {_identifier(CONFIDENCE)}")
        conditions += [f"{_sql_value(a, columns)} <> {_sql_value(b, columns)}" for a, b in clause.different]
        if clause.rule.condition is not None:
            condition, first = clause.rule.condition, len(clause.atoms) + 1
            sides = [columns[value] for value in clause.values]
            if condition.kind is AttributeKind.NUMBER:
                # A text that is no number must not be taken for one, in whichever order conditions are looked at.
                attributes = (
                    f"t{number}.{self._columns[1]} = {_sql_text(condition.attribute)}" for number in count(first)
                )
                sides = [
                    f"CASE WHEN {one} THEN CAST({side} AS double precision) END"
                    for one, side in zip(attributes, sides, strict=False)
                ]
            text = "{operator} '{bound}'"
            bounds = clause.comparisons("{operator} {bound}", text, text, sides[-1])
            conditions += [f"{sides[0]} {bound}" for bound in bounds]
        tables = ", ".join(f"{self._table} AS t{number}" for number in range(1, len(clause.body) + 1))
        fulfilled = "\n  AND ".join(conditions)
        return f"SELECT DISTINCT {', '.join(shown)}\nFROM {tables}\nWHERE {fulfilled}"

    def _columns_of(self, clause: Clause) -> tuple[dict[Variable, str], list[str]]:
        """Return the column that each variable is read from, and the conditions of the rows."""
        subject, relation, object = self._columns
        columns: dict[Variable, str] = {}
        conditions: list[str] = []
        for number, atom in enumerate(clause.body, 1):
            conditions.append(f"t{number}.{relation} = {_sql_text(atom.relation)}")
            for term, column in ((atom.subject, subject), (atom.object, object)):
                name = f"t{number}.{column}"
                if isinstance(term, Variable) and term not in columns:
                    columns[term] = name
                else:
                    conditions.append(f"{name} = {_sql_value(term, columns)}")
        return columns, conditions


def _sql_value(term: Term, columns: dict[Variable, str]) -> str:
    return _sql_text(term.label) if isinstance(term, Constant) else columns[term]


def _sql_text(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_name(table: str) -> str:
    """Quote a table, which may be in a schema: kb.triples."""
    return ".".join(map(_identifier, table.split(".")))


WRITERS: dict[str, Callable[[ExportOptions], Writer]] = {
    "sparql": sparql_writer,
    "sql": SqlWriter,
    "cypher": CypherWriter,
    "datalog": DatalogWriter,
    "prolog": PrologWriter,
    "shacl": ShaclWriter,
}
