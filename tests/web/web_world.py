"""People who live in cities and speak languages: most as their country does, some not; labels of all kinds."""

from __future__ import annotations

from pathlib import Path

SCRIPT = "<script>alert('x')</script>"
QUOTED = "\"quoted\" & 'single' <b>"
RIGHT_TO_LEFT = "ירושלים של זהב"
LONG = "long " + "x" * 9_990 + " end"
ODD = (SCRIPT, QUOTED, RIGHT_TO_LEFT, LONG)

COUNTRIES = {"Netherlands": "Dutch", "France": "French", "Spain": "Spanish"}
N_CITIES, N_PEOPLE = 3, 5


def write_world(folder: Path) -> None:
    """Write train, valid and test."""
    folder.mkdir(parents=True)
    facts = _facts()
    speaks = [fact for fact in facts if fact[1] == "speaks"]
    held_out = speaks[::6]
    splits = {"train": [fact for fact in facts if fact not in held_out], "valid": held_out[::2], "test": held_out[1::2]}
    for name, found in splits.items():
        (folder / f"{name}.txt").write_text("".join("\t".join(fact) + "\n" for fact in found), "utf-8")


def _facts() -> list[tuple[str, str, str]]:
    facts = []
    for country, language in COUNTRIES.items():
        facts.append((country, "language", language))
        for city in (f"{country}_city_{n}" for n in range(N_CITIES)):
            facts.append((city, "located_in", country))
            for person in (f"{city}_person_{n}" for n in range(N_PEOPLE)):
                facts += [(person, "lives_in", city), (person, "speaks", language)]
    for label in ODD:
        facts += [(label, "lives_in", "France_city_0"), (label, "speaks", "Dutch"), ("Spain", "knows", label)]
    return facts
