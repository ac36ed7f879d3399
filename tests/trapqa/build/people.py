"""Invented people, so that the tests of construction need no data: painters with schools, prizes and dates."""

from __future__ import annotations

import random

from latentkt.trapqa.build.lists import ClosedList, Entry
from latentkt.trapqa.build.profiles import Profile

TOWNS = [*map("{}orva".format, "ABCDEFGHIJKLMNO")]
SCHOOLS = [f"University of {town}" for town in TOWNS]
CITIES = ["Vienna", "Paris", "Rome", "London"]
FLOWERS = ["Orchid", "Iris", "Lily", "Rose", "Tulip", "Aster", "Dahlia", "Lotus", "Peony", "Viola"]
PRIZES = [f"{flower} Medal" for flower in FLOWERS]
AWARD = "Great Prize of Letters"


def people(n: int = 150, seed: int = 0) -> list[Profile]:
    """People with full dates; every fourth one has the award of `great_prize`."""
    rng = random.Random(seed)
    made = []
    for index in range(n):
        born = rng.randrange(1840, 1940)
        died = born + rng.randrange(50, 80)
        name = f"{chr(65 + index % 26)}van {_surname(index)}"
        attributes = {
            "alma_mater": (SCHOOLS[index % 15],),
            "award": tuple(sorted(rng.sample(PRIZES, 2))),
            "birth_place": (CITIES[rng.randrange(4)],),
        }
        text = f"{name} was born in {born} and died in {died}. The work is on optics."
        made.append(
            Profile(f"Q{index}", name, (), attributes, f"{born}-03-01", f"{died}-03-01", text, float(index % 9))
        )
    return made


def _surname(index: int) -> str:
    syllables = ["ra", "lo", "mi", "te", "su", "ka", "no", "ve"]
    return "Z" + "".join(syllables[(index // 8**place) % 8] for place in range(3))


def great_prize(everybody: list[Profile]) -> ClosedList:
    """The award of every fourth person, one a year."""
    winners = everybody[::4]
    entries = tuple(Entry((p.name,), p.born, AWARD, 1901 + 3 * n) for n, p in enumerate(winners))
    return ClosedList("the great list", "CC0", entries)
