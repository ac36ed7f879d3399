"""Cities that exclude each other: somebody born in one of them was not born in another.

Only cities are listed whose names are settled and whose areas do not overlap; boroughs, counties and countries are not.
A place that is not listed decides nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from latentkt.trapqa.build.profiles import Profile

__all__ = ["CITIES", "PLACES", "cities_of", "written"]

PLACES = ("birth_place", "place_of_birth", "birth_city", "birthplace", "birth_country")
"""Attributes that hold places of birth."""
CITIES: dict[str, tuple[str, ...]] = {
    "Amsterdam": (), "Athens": (), "Baku": (), "Baltimore": (), "Barcelona": (), "Basel": (), "Belgrade": (),
    "Berlin": (), "Bern": (), "Birmingham": ("Birmingham, England",), "Bologna": (),
    "Boston": ("Boston, Massachusetts",), "Brussels": (), "Bucharest": (), "Budapest": (), "Buenos Aires": (),
    "Cairo": (), "Chicago": ("Chicago, Illinois",), "Copenhagen": (), "Dresden": (), "Dublin": (), "Düsseldorf": (),
    "Edinburgh": (), "Florence": (), "Frankfurt": ("Frankfurt am Main",), "Geneva": (), "Glasgow": (),
    "Göttingen": (), "Graz": (), "Hamburg": (), "Helsinki": (), "Istanbul": (), "Kiev": ("Kyiv",),
    "Kraków": ("Cracow",), "Kyoto": (), "Leiden": (), "Leipzig": (), "Lisbon": (), "Liverpool": (),
    "London": ("London, England",), "Los Angeles": ("Los Angeles, California",), "Lyon": (), "Madrid": (),
    "Manchester": ("Manchester, England",), "Melbourne": (), "Milan": (), "Montreal": (), "Moscow": (),
    "Mumbai": ("Bombay",), "Munich": (), "Naples": (), "New Haven": ("New Haven, Connecticut",),
    "New York City": ("New York City, New York", "New York, New York"), "Nuremberg": (), "Odessa": (), "Osaka": (),
    "Oslo": ("Christiania",), "Paris": ("Paris, France",), "Philadelphia": ("Philadelphia, Pennsylvania",),
    "Pittsburgh": ("Pittsburgh, Pennsylvania",), "Prague": (), "Riga": (), "Rome": (), "Rotterdam": (),
    "Saint Petersburg": ("St. Petersburg", "Leningrad"), "San Francisco": ("San Francisco, California",),
    "Shanghai": (), "Stockholm": (), "Stuttgart": (), "Sydney": (), "Tbilisi": (), "The Hague": (), "Tokyo": (),
    "Toronto": (), "Trieste": (), "Turin": (), "Utrecht": (), "Venice": (), "Vienna": (), "Vilnius": (), "Warsaw": (),
    "Zürich": ("Zurich",),
}  # fmt: skip
"""City -> other ways to write it."""
_COUNTRIES = {
    "the": (
        "German Empire", "Russian Empire", "United States", "Netherlands", "Kingdom of Prussia", "Austrian Empire",
        "Soviet Union", "Ottoman Empire", "United Kingdom", "Holy Roman Empire", "Dutch Republic", "Kingdom of Hungary",
    ),
    "": (
        "Argentina", "Australia", "Austria", "Austria-Hungary", "Belgium", "Brazil", "British India", "Bulgaria",
        "Canada", "China", "Denmark", "Egypt", "England", "Finland", "France", "Germany", "Greece", "Hungary",
        "India", "Iran", "Ireland", "Israel", "Italy", "Japan", "Mexico", "New Zealand", "Norway", "Pakistan",
        "Poland", "Portugal", "Romania", "Russia", "Scotland", "South Africa", "Spain", "Sweden", "Switzerland",
        "Turkey", "Wales",
    ),
}  # fmt: skip
_LARGER = re.compile(
    r"\(state\)|\b(?:Empire|Kingdom|Republic|SFSR|SSR|USSR|Union|Confederation|Governorate|Prefecture|Duchy|Province|"
    r"Illinois|California|Pennsylvania|Massachusetts|Bavaria|Prussia|Saxony|Bohemia|Scotland|England)$"
)
_WRITTEN = {name.casefold(): f"{article} {name}".strip() for article, names in _COUNTRIES.items() for name in names}
_HOME = {form.casefold(): city for city, forms in CITIES.items() for form in (city, *forms)}


@lru_cache(maxsize=65536)
def _city(place: str) -> str | None:
    return _HOME.get(place.casefold())


def written(place: str) -> str | None:
    """A listed city or country as a sentence has it, article and all; None for another place.

    Example:
        >>> written("Russian Empire"), written("Bombay"), written("Lancashire")
        ('the Russian Empire', 'Mumbai', None)
    """
    return _city(place) or _WRITTEN.get(place.casefold().removeprefix("the "))


def cities_of(profile: Profile) -> set[str]:
    """The listed cities among a profile's places of birth; none where another place stands beside them that is unknown.

    Countries, states and empires may stand beside a city, and longer forms of it ("Vienna, Austria"). Any other place
    may be where the person was really born (Mineola beside New York City), so then the set is empty. Two cities settle
    nothing either, which the caller sees.

    Example:
        >>> cities_of(Profile("Q1", "Ann", attributes={"birth_place": ("Bombay", "India")}))
        {'Mumbai'}
        >>> cities_of(Profile("Q2", "Bob", attributes={"birth_place": ("New York City", "Mineola, New York")}))
        set()
    """
    places = [place for name in PLACES for place in profile.attributes.get(name, ())]
    cities = {city for city in map(_city, places) if city is not None}
    others = (place for place in places if _city(place) is None)
    return cities if all(_holds_a_city(place, cities) for place in others) else set()


def _holds_a_city(place: str, cities: set[str]) -> bool:
    """Whether a place is a larger one, or one of the cities written longer."""
    folded = place.casefold().removeprefix("the ")
    return (
        folded in _WRITTEN
        or _LARGER.search(place) is not None
        or any(folded.startswith(f"{form.casefold()},") for city in cities for form in (city, *CITIES[city]))
    )
