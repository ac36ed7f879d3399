"""Name removal, and the name-removed profile as one paragraph.

The name also stands inside attributes: "Planck constant" in Planck's profile, "Bohr–Sommerfeld model" in Bohr's. There
the surname goes as well, alone or in compounds and derived words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from latentkt.trapqa.build.profiles import Profile

__all__ = ["linearise", "mentions", "remove_names", "surname"]

_HONOUR = re.compile(
    r"^(?:sir|dame|the|lord|lady|baron|baroness|count|dr\.?|prof\.?|professor)\s+|,?\s+(?:jr\.?|sr\.?|i{2,3}|iv|frs)$",
    re.I,
)
_DERIVED = r"(?:['’]s|s['’]|s|ian|ians|ean|eans|ism|ist|ists)?"
_EMPTY = re.compile(r"\(\s*\)")
_EDGE = re.compile(r"^[\s\-–—,;:'’]+|[\s\-–—,;:(]+$")


def surname(name: str) -> str:
    """The last word of a name without honours and suffixes.

    Example:
        >>> surname("Sir Nevill Francis Mott"), surname("Norman Foster Ramsey, Jr."), surname("Aristotle")
        ('Mott', 'Ramsey', 'Aristotle')
    """
    words = _without_honours(name).replace(",", " ").split()
    return words[-1] if words else name


def _without_honours(name: str) -> str:
    while True:
        shorter = _HONOUR.sub("", name.strip())
        if shorter == name.strip() or not shorter:
            return name.strip()
        name = shorter


@lru_cache(maxsize=4096)
def _pattern(names: tuple[str, ...], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    forms = {form for name in names for form in (name, _without_honours(name), surname(name))}
    ordered = sorted((form for form in forms if len(form) > 1), key=lambda form: (-len(form), form))
    inner = "|".join(re.escape(form) for form in ordered) or r"(?!)"
    return re.compile(rf"(?<!\w)(?:{inner}){_DERIVED}(?!\w)", flags)


def mentions(text: str, names: Iterable[str]) -> str | None:
    """The first place where a text names a person: a whole name or the surname, alone, in compounds or derived.

    Written as names are: "born" does not name Max Born.

    Example:
        >>> mentions("the Bose–Einstein condensate", ["Satyendra Nath Bose"])
        'Bose'
        >>> mentions("boson", ["Satyendra Nath Bose"]) is None
        True
    """
    found = _pattern(tuple(names)).search(text)
    return found.group() if found else None


def remove_names(profile: Profile) -> Profile:
    """The profile without its person's name, in attributes too; values that were nothing else are gone.

    Example:
        >>> known_for = ("Planck constant", "Planck's law", "Planck")
        >>> remove_names(Profile("Q1", "Max Planck", attributes={"known_for": known_for})).attributes
        {'known_for': ('constant', 'law')}
    """
    pattern = _pattern(profile.names, re.IGNORECASE)
    lists = {
        name: tuple(value for value in (_tidy(pattern.sub(" ", value)) for value in values) if value)
        for name, values in profile.attributes.items()
    }
    return replace(profile, name="", aliases=(), attributes={name: values for name, values in lists.items() if values})


def _tidy(value: str) -> str:
    return _EDGE.sub("", " ".join(_EMPTY.sub(" ", value).split()))


def linearise(profile: Profile) -> str:
    """The attributes as one short paragraph, in the order of the profile.

    Example:
        >>> linearise(Profile("Q1", "", attributes={"known_for": ("Topology", "Maser"), "field": ("Optics",)}))
        'Known for: Topology, Maser. Field: Optics.'
    """
    return " ".join(
        f"{name.replace('_', ' ').capitalize()}: {', '.join(values)}." for name, values in profile.attributes.items()
    )
