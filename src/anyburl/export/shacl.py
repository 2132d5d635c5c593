"""SHACL rules (SHACL Advanced Features), in Turtle: a shape with a `sh:SPARQLRule` for each rule."""

from __future__ import annotations

from dataclasses import replace

from anyburl.export.clause import Clause
from anyburl.export.sparql import RdfWriter
from anyburl.rules.rule import Atom, Term, Variable

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
