"""Values that contradict the order, the range or the unit of others."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from anyburl import load_dataset
from anyburl.data.dataset import Dataset
from anyburl.tools.doctor.examine import examine
from anyburl.tools.doctor.findings import DatasetFacts
from anyburl.tools.doctor.values import check_values, find_suspects

BORN = {f"p{n}": date(1700, 1, 1) + timedelta(days=1200 * n) for n in range(60)}


def people(folder: Path, **wrong: str) -> Dataset:
    """Sixty people, each the parent of the next but five, who live 70 years and are about 1.7 m tall."""
    facts = [f"p{n}\tparent\tp{n + 5}\n" for n in range(55)] + [f"p{n}\tlives\tplace{n % 3}\n" for n in range(60)]
    (folder / "train.txt").write_text("".join(facts))
    values = {f"{who}\tborn": str(day) for who, day in BORN.items()}
    values |= {f"{who}\tdied": str(day + timedelta(days=25_000)) for who, day in BORN.items()}
    values |= {f"p{n}\theight": f"1.{60 + n % 25}" for n in range(60)} | {"p1\talive": "false"}
    values |= {key.replace("_", "\t"): value for key, value in wrong.items()}
    (folder / "attributes.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in values.items()))
    return load_dataset(folder)


def suspects(data: Dataset) -> dict[tuple[str, str], str]:
    found = find_suspects(DatasetFacts(data))
    return {(data.vocabulary.entity_label(one.entity), one.attribute): one.reason for one in found}


def test_nothing_is_found_in_values_without_errors(tmp_path: Path) -> None:
    assert suspects(people(tmp_path)) == {}


@pytest.mark.parametrize(
    ("wrong", "where", "reason"),
    [
        (
            {"p30_died": "1701-01-01"},
            ("p30", "died"),
            "born 1798-07-26 is after died 1701-01-01; born is before in 98.3% of 60",
        ),
        ({"p30_height": "171"}, ("p30", "height"), "is it in another unit? It is about 100 times"),
        ({"p30_height": "9.99"}, ("p30", "height"), "similar entities have 1."),
        ({"p30_born": "9999-01-01"}, ("p30", "born"), "similar entities have 17"),
    ],
)
def test_a_wrong_value_is_found(tmp_path: Path, wrong: dict[str, str], where: tuple[str, str], reason: str) -> None:
    found = suspects(people(tmp_path, **wrong))
    assert where in found
    assert reason in found[where]


def test_order_along_a_relation(tmp_path: Path) -> None:
    found = suspects(people(tmp_path, p59_born="1703-01-01", p59_died="1760-01-01"))
    assert "along parent, subjects are before objects in 98.2% of 55" in found["p59", "born"]


def test_the_report_counts_values_and_lists_suspects(tmp_path: Path) -> None:
    report = examine(people(tmp_path, p30_height="171"), seconds=0)
    assert report.sizes["values"] == 181
    warning, note = [finding for finding in report.findings if finding.check == "values"]
    assert report.failed(["values"]) == ("values",)
    assert warning.to_json()["examples"][0]["entity"] == "p30"
    assert note.sentence == "181 values of 4 attributes"
    assert ("born", "date", 60, 60, "1700-01-01", "1795-04-13", str(BORN["p59"])) in note.examples
    plain = examine("geo", seconds=0)
    assert "values" not in plain.checks
    assert "values" not in plain.sizes


def test_data_without_values_has_no_findings() -> None:
    assert check_values(DatasetFacts(load_dataset("geo")), 10) == []
