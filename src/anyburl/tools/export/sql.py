"""SQL over a table of triples: a SELECT for each rule, or an INSERT into a table of predictions."""

from __future__ import annotations

from anyburl.rules.rule import Constant, Term, Variable
from anyburl.tools.export.clause import Clause, Writer
from anyburl.tools.export.options import ExportOptions

PREDICTIONS = "predictions"
CONFIDENCE = "confidence"


class SqlWriter(Writer):
    """A body atom is a row of the table; standard SQL only."""

    comment = "--"

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        self._table = _name(options.table)
        self._target = _name(options.target or PREDICTIONS)
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
        places, conditions = self._places(clause)
        head = (_value(clause.head.subject, places), _text(clause.head.relation), _value(clause.head.object, places))
        shown = [f"{value} AS {column}" for value, column in zip(head, self._columns, strict=True)]
        if self.options.insert:
            shown.append(f"{clause.scores.confidence!r} AS {_identifier(CONFIDENCE)}")
        conditions += [f"{_value(a, places)} <> {_value(b, places)}" for a, b in clause.different]
        tables = ", ".join(f"{self._table} AS t{number}" for number in range(1, len(clause.body) + 1))
        fulfilled = "\n  AND ".join(conditions)
        return f"SELECT DISTINCT {', '.join(shown)}\nFROM {tables}\nWHERE {fulfilled}"

    def _places(self, clause: Clause) -> tuple[dict[Variable, str], list[str]]:
        """Return the column that each variable is read from, and what the rows have to fulfil."""
        subject, relation, object = self._columns
        places: dict[Variable, str] = {}
        conditions: list[str] = []
        for number, atom in enumerate(clause.body, 1):
            conditions.append(f"t{number}.{relation} = {_text(atom.relation)}")
            for term, column in ((atom.subject, subject), (atom.object, object)):
                place = f"t{number}.{column}"
                if isinstance(term, Variable) and term not in places:
                    places[term] = place
                else:
                    conditions.append(f"{place} = {_value(term, places)}")
        return places, conditions


def _value(term: Term, places: dict[Variable, str]) -> str:
    return _text(term.label) if isinstance(term, Constant) else places[term]


def _text(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _name(table: str) -> str:
    """Quote a table, which may be in a schema: kb.triples."""
    return ".".join(map(_identifier, table.split(".")))
