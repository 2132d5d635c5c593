"""Make the built-in history: when countries joined and left unions, applied to them, chaired them, adopted the euro.

    python scripts/make_history.py                # or: python scripts/make_history.py OUTPUT_FOLDER

The tables below are the data: one line per year, written down from general knowledge, not compared with the lists that
the organisations publish. Where these are, and the meaning of every relation, is in src/anyburl/data/history/README.md.
"""

from __future__ import annotations

import gzip
import sys
from itertools import cycle
from pathlib import Path

OUTPUT_FOLDER = Path(__file__).parent.parent / "src" / "anyburl" / "data" / "history"
VALID_FROM, TEST_FROM = 2008, 2014

SIX = "Belgium Germany France Italy Luxembourg Netherlands"

TABLES = {
    ("joins", "United_Nations"): """
1945 Argentina Australia Belarus Belgium Bolivia Brazil Canada Chile China Colombia Costa_Rica Cuba Czechoslovakia
1945 Denmark
1945 Dominican_Republic Ecuador Egypt El_Salvador Ethiopia France Greece Guatemala Haiti Honduras India Iran Iraq
1945 Lebanon
1945 Liberia Luxembourg Mexico Netherlands New_Zealand Nicaragua Norway Panama Paraguay Peru Philippines Poland
1945 Saudi_Arabia South_Africa Syria Turkey Ukraine Soviet_Union United_Kingdom United_States Uruguay Venezuela
1945 Yugoslavia
1946 Afghanistan Iceland Sweden Thailand
1947 Pakistan Yemen
1948 Myanmar
1949 Israel
1950 Indonesia
1955 Albania Austria Bulgaria Cambodia Finland Hungary Ireland Italy Jordan Laos Libya Nepal Portugal Romania Spain
1955 Sri_Lanka
1956 Japan Morocco Sudan Tunisia
1957 Ghana Malaysia
1958 Guinea
1960 Benin Burkina_Faso Cameroon Central_African_Republic Chad Republic_of_the_Congo Ivory_Coast Cyprus Gabon
1960 Madagascar
1960 Democratic_Republic_of_the_Congo Mali Niger Nigeria Senegal Somalia Togo
1961 Mauritania Mongolia Sierra_Leone Tanzania
1962 Algeria Burundi Jamaica Rwanda Trinidad_and_Tobago Uganda
1963 Kenya Kuwait
1964 Malawi Malta Zambia
1965 Gambia Maldives Singapore
1966 Barbados Botswana Guyana Lesotho
1968 Equatorial_Guinea Eswatini Mauritius
1970 Fiji
1971 Bahrain Bhutan Oman Qatar United_Arab_Emirates
1973 Bahamas Germany
1974 Bangladesh Grenada Guinea-Bissau
1975 Cabo_Verde Comoros Mozambique Papua_New_Guinea Sao_Tome_and_Principe Suriname
1976 Angola Samoa Seychelles
1977 Djibouti Vietnam
1978 Dominica Solomon_Islands
1979 Saint_Lucia
1980 Saint_Vincent_and_the_Grenadines Zimbabwe
1981 Antigua_and_Barbuda Belize Vanuatu
1983 Saint_Kitts_and_Nevis
1984 Brunei
1990 Liechtenstein Namibia
1991 Estonia Latvia Lithuania Marshall_Islands Micronesia North_Korea South_Korea
1992 Armenia Azerbaijan Bosnia_and_Herzegovina Croatia Georgia Kazakhstan Kyrgyzstan Moldova San_Marino Slovenia
1992 Tajikistan Turkmenistan Uzbekistan
1993 Andorra Czechia Eritrea Monaco North_Macedonia Slovakia
1994 Palau
1999 Kiribati Nauru Tonga
2000 Serbia Tuvalu
2002 Switzerland Timor-Leste
2006 Montenegro
2011 South_Sudan""",
    ("leaves", "Soviet_Union"): """
1991 Armenia Azerbaijan Belarus Estonia Georgia Kazakhstan Kyrgyzstan Latvia Lithuania Moldova Russia Tajikistan
1991 Turkmenistan Ukraine Uzbekistan""",
    ("leaves", "Yugoslavia"): """
1991 Croatia North_Macedonia Slovenia
1992 Bosnia_and_Herzegovina""",
    ("leaves", "Czechoslovakia"): """
1993 Czechia Slovakia""",
    ("applies_to", "European_Union"): """
1961 Denmark Ireland United_Kingdom
1962 Norway
1967 Denmark Ireland Norway United_Kingdom
1975 Greece
1977 Portugal Spain
1987 Turkey
1989 Austria
1990 Cyprus Malta
1991 Sweden
1992 Finland Norway Switzerland
1994 Hungary Poland
1995 Bulgaria Estonia Latvia Lithuania Romania Slovakia
1996 Czechia Slovenia
2003 Croatia
2004 North_Macedonia
2008 Montenegro
2009 Albania Iceland Serbia
2016 Bosnia_and_Herzegovina
2022 Georgia Kosovo Moldova Ukraine""",
    ("joins", "European_Union"): f"""
1958 {SIX}
1973 Denmark Ireland United_Kingdom
1981 Greece
1986 Portugal Spain
1995 Austria Finland Sweden
2004 Cyprus Czechia Estonia Hungary Latvia Lithuania Malta Poland Slovakia Slovenia
2007 Bulgaria Romania
2013 Croatia""",
    ("leaves", "European_Union"): """
2020 United_Kingdom""",
    ("joins", "ERM_II"): """
1999 Denmark Greece
2004 Estonia Lithuania Slovenia
2005 Cyprus Latvia Malta Slovakia
2020 Bulgaria Croatia""",
    ("adopts", "Euro"): """
1999 Austria Belgium Finland France Germany Ireland Italy Luxembourg Netherlands Portugal Spain
2001 Greece
2007 Slovenia
2008 Cyprus Malta
2009 Slovakia
2011 Estonia
2014 Latvia
2015 Lithuania
2023 Croatia
2026 Bulgaria""",
    ("joins", "Schengen_Area"): """
1995 Belgium France Germany Luxembourg Netherlands Portugal Spain
1997 Austria Italy
2000 Greece
2001 Denmark Finland Iceland Norway Sweden
2007 Czechia Estonia Hungary Latvia Lithuania Malta Poland Slovakia Slovenia
2008 Switzerland
2011 Liechtenstein
2023 Croatia
2024 Bulgaria Romania""",
    ("joins", "NATO"): """
1949 Belgium Canada Denmark France Iceland Italy Luxembourg Netherlands Norway Portugal United_Kingdom United_States
1952 Greece Turkey
1955 Germany
1982 Spain
1999 Czechia Hungary Poland
2004 Bulgaria Estonia Latvia Lithuania Romania Slovakia Slovenia
2009 Albania Croatia
2017 Montenegro
2020 North_Macedonia
2023 Finland
2024 Sweden""",
    ("joins", "Partnership_for_Peace"): """
1994 Albania Armenia Azerbaijan Bulgaria Czechia Estonia Finland Georgia Hungary Kazakhstan Kyrgyzstan Latvia
1994 Lithuania
1994 Moldova Poland Romania Russia Slovakia Slovenia Sweden Turkmenistan Ukraine Uzbekistan
1995 Austria Belarus North_Macedonia
1996 Switzerland
1999 Ireland
2000 Croatia
2002 Tajikistan
2006 Bosnia_and_Herzegovina Montenegro Serbia""",
    ("joins", "Membership_Action_Plan"): """
1999 Albania Bulgaria Estonia Latvia Lithuania North_Macedonia Romania Slovakia Slovenia
2002 Croatia
2009 Montenegro
2010 Bosnia_and_Herzegovina""",
    ("joins", "OECD"): """
1961 Austria Belgium Canada Denmark France Germany Greece Iceland Ireland Luxembourg Netherlands Norway Portugal Spain
1961 Sweden Switzerland Turkey United_Kingdom United_States
1962 Italy
1964 Japan
1969 Finland
1971 Australia
1973 New_Zealand
1994 Mexico
1995 Czechia
1996 Hungary Poland South_Korea
2000 Slovakia
2010 Chile Estonia Israel Slovenia
2016 Latvia
2018 Lithuania
2020 Colombia
2021 Costa_Rica""",
    ("joins", "Council_of_Europe"): """
1949 Belgium Denmark France Greece Ireland Italy Luxembourg Netherlands Norway Sweden United_Kingdom
1950 Germany Iceland Turkey
1956 Austria
1961 Cyprus
1963 Switzerland
1965 Malta
1976 Portugal
1977 Spain
1978 Liechtenstein
1988 San_Marino
1989 Finland
1990 Hungary
1991 Poland
1992 Bulgaria
1993 Czechia Estonia Lithuania Romania Slovakia Slovenia
1994 Andorra
1995 Albania Latvia Moldova North_Macedonia Ukraine
1996 Croatia Russia
1999 Georgia
2001 Armenia Azerbaijan
2002 Bosnia_and_Herzegovina
2003 Serbia
2004 Monaco
2007 Montenegro""",
    ("leaves", "Council_of_Europe"): """
2022 Russia""",
    ("joins", "EFTA"): """
1960 Austria Denmark Norway Portugal Sweden Switzerland United_Kingdom
1970 Iceland
1986 Finland
1991 Liechtenstein""",
    ("leaves", "EFTA"): """
1973 Denmark United_Kingdom
1986 Portugal
1995 Austria Finland Sweden""",
    ("joins", "ASEAN"): """
1967 Indonesia Malaysia Philippines Singapore Thailand
1984 Brunei
1995 Vietnam
1997 Laos Myanmar
1999 Cambodia""",
    ("chairs", "EU_Council"): """
1958 Belgium Germany
1959 France Italy
1960 Luxembourg Netherlands
1961 Belgium Germany
1962 France Italy
1963 Luxembourg Netherlands
1964 Belgium Germany
1965 France Italy
1966 Luxembourg Netherlands
1967 Belgium Germany
1968 France Italy
1969 Luxembourg Netherlands
1970 Belgium Germany
1971 France Italy
1972 Luxembourg Netherlands
1973 Belgium Denmark
1974 Germany France
1975 Ireland Italy
1976 Luxembourg Netherlands
1977 United_Kingdom Belgium
1978 Denmark Germany
1979 France Ireland
1980 Italy Luxembourg
1981 Netherlands United_Kingdom
1982 Belgium Denmark
1983 Germany Greece
1984 France Ireland
1985 Italy Luxembourg
1986 Netherlands United_Kingdom
1987 Belgium Denmark
1988 Germany Greece
1989 Spain France
1990 Ireland Italy
1991 Luxembourg Netherlands
1992 Portugal United_Kingdom
1993 Denmark Belgium
1994 Greece Germany
1995 France Spain
1996 Italy Ireland
1997 Netherlands Luxembourg
1998 United_Kingdom Austria
1999 Germany Finland
2000 Portugal France
2001 Sweden Belgium
2002 Spain Denmark
2003 Greece Italy
2004 Ireland Netherlands
2005 Luxembourg United_Kingdom
2006 Austria Finland
2007 Germany Portugal
2008 Slovenia France
2009 Czechia Sweden
2010 Spain Belgium
2011 Hungary Poland
2012 Denmark Cyprus
2013 Ireland Lithuania
2014 Greece Italy
2015 Latvia Luxembourg
2016 Netherlands Slovakia
2017 Malta Estonia
2018 Bulgaria Austria
2019 Romania Finland
2020 Croatia Germany
2021 Portugal Slovenia
2022 France Czechia
2023 Sweden Spain
2024 Belgium Hungary
2025 Poland Denmark""",
}

G7 = ("France", "United_States", "United_Kingdom", "Germany", "Japan", "Italy", "Canada")
G7_OUT_OF_TURN = {2006: "Russia", 2014: None}
"""The order of the presidency since 1975; Russia came between in 2006, and was suspended before its turn in 2014."""


def facts() -> list[tuple[str, str, str, int]]:
    """Return all facts: subject, relation, object and year."""
    stated = []
    for (relation, object), table in TABLES.items():
        for line in table.strip().splitlines():
            year, *countries = line.split()
            stated += [(country, relation, object, int(year)) for country in countries]
    turns = cycle(G7)
    for year in range(1975, 2026):
        country = G7_OUT_OF_TURN[year] if year in G7_OUT_OF_TURN else next(turns)
        stated += [(country, "chairs", "G7", year)] if country else []
    return sorted(set(stated), key=lambda fact: (fact[3], *fact[:3]))


def write(folder: Path) -> None:
    """Write train, valid and test in the order of time; the same facts give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = {"train": (0, VALID_FROM), "valid": (VALID_FROM, TEST_FROM), "test": (TEST_FROM, 10_000)}
    for split, (start, end) in bounds.items():
        lines = ["\t".join(map(str, fact)) + "\n" for fact in facts() if start <= fact[3] < end]
        with (folder / f"{split}.txt.gz").open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            packed.write("".join(lines).encode())
        print(split, len(lines))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT_FOLDER)
