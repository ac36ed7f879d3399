"""From an attribute's value to words that can stand in an English sentence, or to the reason why it cannot.

Sources write "Quantum field theory" and "University of Göttingen"; a sentence wants "quantum field theory" and "the
University of Göttingen". How a phrase is cased, and whether it takes an article, is read off the profiles' own texts
where they have it; where they do not, from its shape. A value whose shape says nothing is not used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from latentkt.trapqa.build.places import written
from latentkt.trapqa.build.profiles import bare, latin

__all__ = ["Phrase", "Phrases", "Shape"]

Shape = Literal["topic", "field", "institution", "award", "person", "place", "role", "plain"]
_MAX_WORDS = 8
_BLANK = {
    "astronomy", "author", "book", "cft correspondence", "chemistry", "discovery", "engineering", "experiment",
    "invention", "mathematics", "philosophy", "physics", "professor", "research", "science", "scientist",
    "teaching", "theory", "ussr", "writing",
}  # fmt: skip
_PERSONS = {"physicist": "physics", "mathematician": "mathematics", "chemist": "chemistry", "astronomer": "astronomy",
            "philosopher": "philosophy", "engineer": "engineering", "astrophysicist": "astrophysics",
            "biologist": "biology", "composer": "composition"}  # fmt: skip
_FIELD = re.compile(
    r"(?:physics|mechanics|theory|chemistry|astronomy|mathematics|optics|dynamics|engineering|science|sciences|geometry|"
    r"topology|\w+ology|\w+ography|\w+nomy|\w+metry|spectroscopy|relativity|electronics|statistics|thermodynamics|"
    r"philosophy|medicine|acoustics|magnetism|superconductivity|algebra|analysis|economics|genetics|meteorology|"
    r"gravitation|electrodynamics|composition|crystallography|nanotechnology|biophysics|geophysics|astrophysics)$"
)
_INSTITUTION = re.compile(
    r"\b(?:University|Universität|Università|Université|College|Institute|Institut|School|Academy|École|Ecole|ETH|"
    r"Polytechnic|Polytechnique|Caltech|MIT|CERN|Laborator(?:y|ies)|Labs?|Observatory|Hochschule|Conservatory|Center|"
    r"Centre|Fermilab|DESY|SLAC)\b"
)
_WITH_ARTICLE = re.compile(
    r"^(?:Royal|Imperial Academy|Technical University|Free University|Open University|Humboldt University|"
    r"Ludwig Maximilian University|Jagiellonian University|Perimeter|Collège|École)\b|"
    r"^(?:[\w.'’-]+ ){0,4}(?:University|Institute|Academy|School|Laboratory|Observatory|Institution|College|"
    r"Conservatory|Center|Centre|Polytechnic) (?:of|for|in)\b|"
    r"\b(?:Institute|Observatory|Conservatory|Laboratory|Academy|Center|Centre)$"
)
_AWARD = re.compile(r"\b(?:Medal|Prize|Award|Fellowship|Lectureship|Medallion)(?: (?:of|in|for|and) .+)?$")
_COUNT_HEADS = {
    "effect", "mechanism", "boson", "condensate", "project", "principle", "equation", "group", "paradox", "model",
    "theorem", "constant", "experiment", "relation", "transform", "function", "matrix", "tensor", "problem",
    "conjecture", "bomb", "transition", "telescope", "cyclotron", "laser", "maser", "electron", "neutrino",
    "positron", "proton", "neutron", "transistor", "tokamak", "atom", "system", "method", "formula", "scale",
    "diagram", "number", "distribution", "approximation", "interpretation", "postulate", "shift", "microscope",
    "counter", "chamber", "detector", "force", "field", "limit", "hypothesis", "potential", "process", "formalism",
    "cycle", "sphere", "lattice", "criterion", "ratio", "operator", "gauge", "invariant",
}  # fmt: skip
_MASS = re.compile(
    r"(?:ity|ics|ism|ence|ance|logy|graphy|metry|theory|physics|mechanics|radiation|fission|fusion|gravity|relativity|"
    r"emission|absorption|diffraction|scattering|symmetry|entropy|turbulence|magnetism|light|energy|matter|[^s]s|waves|"
    r"inflation|quantization|renormalization|tunnelling|cooling|holography|electrolysis|chemistry|spectroscopy)$"
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A value in words.

    Attributes:
        text: The words, or None where the value cannot be used.
        why: Why not.
    """

    text: str | None
    why: str = ""


class Phrases:
    """Puts values into words; knows how the profiles' texts write them.

    Args:
        texts: Running texts of the profiles.

    Example:
        >>> phrases = Phrases(["He worked on the Zeeman effect and on quantum field theory in Leiden."])
        >>> phrases.of("Quantum field theory", "topic").text, phrases.of("Zeeman effect", "topic").text
        ('quantum field theory', 'the Zeeman effect')
        >>> phrases.of("University of Leiden", "institution").text
        'the University of Leiden'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts)
        self._lower = self._text.lower()
        if len(self._lower) != len(self._text):  # a letter whose small form is longer: fold letter by letter
            self._lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in self._text)
        self._shapes: dict[str, Callable[[str], Phrase]] = {
            "topic": self._topic,
            "field": self._field,
            "institution": _institution,
            "award": _award,
            "person": _person,
            "place": _place,
            "role": lambda value: Phrase(f"{'an' if value[:1].lower() in 'aeiou' else 'a'} {self._cased(value)}"),
            "plain": Phrase,
        }
        self.of = cache(self._of)

    def _of(self, value: str, shape: Shape) -> Phrase:
        """The words for a value of that shape."""
        value = bare(value).replace("’", "'")
        if not latin(value):
            return Phrase(None, "another script" if any(c.isalpha() for c in value) else "no words")
        if re.search(r"[\[\]{}()|*_#@/\\<>\"]", value) or len(value.split()) > _MAX_WORDS:
            return Phrase(None, "signs or length that no sentence takes")
        return self._shapes[shape](value)

    def _topic(self, value: str) -> Phrase:
        if value.casefold() in _BLANK or len(value) < 4:
            return Phrase(None, "says too little")
        forms, articles = self._seen(value)
        head = re.split(r" (?:of|for|in) ", value)[0].split()[-1].lower()
        possessive = re.search(r"\w's? ", value) is not None
        counted = head in _COUNT_HEADS and not possessive
        mass = possessive or _MASS.search(head) is not None
        if not counted and not mass and articles <= forms.total() / 2:
            return Phrase(None, "nothing says how it is written in a sentence")
        return Phrase(("" if mass and not counted else "the ") + self._cased(value))

    def _field(self, value: str) -> Phrase:
        value = _PERSONS.get(value.casefold(), value)
        if value.casefold() in _BLANK:
            return Phrase(None, "says too little")
        if not _FIELD.search(value.lower()):
            return Phrase(None, "not the name of a field")
        small = value.isascii() and value == value.title()
        return Phrase(value.lower() if small else self._cased(value))

    def _cased(self, value: str) -> str:
        forms, _ = self._seen(value)
        if forms[value.lower()]:  # capitals of titles and departments do not make a name
            return value.lower()
        if forms:
            return min(forms, key=lambda form: (-forms[form], form))
        first, _, rest = value.partition(" ")
        words, _ = self._seen(first)
        if rest == rest.lower() and words[first.lower()] > words[first]:
            return first.lower() + (f" {rest}" if rest else "")
        return value

    def _seen(self, value: str) -> tuple[Counter[str], int]:
        """How a phrase is written inside sentences, and how often "the" stands before it."""
        return self._occurrences(value.lower())

    @cache  # noqa: B019  # one object a construction, as long-lived as its cache
    def _occurrences(self, wanted: str) -> tuple[Counter[str], int]:
        forms: Counter[str] = Counter()
        articles = 0
        for match in re.finditer(rf"(?<!\w){re.escape(wanted)}(?!\w)", self._lower):
            before = self._text[max(match.start() - 12, 0) : match.start()].rstrip()
            if before and before[-1] not in '.!?:;"“(\n' and len(before) < 12:
                forms[self._text[match.start() : match.end()]] += 1
                articles += re.search(r"\b[Tt]he$", before) is not None
        return forms, articles


def _institution(value: str) -> Phrase:
    if not _INSTITUTION.search(value):
        return Phrase(None, "not the name of an institution")
    return Phrase(("the " if _WITH_ARTICLE.search(value) else "") + value)


def _place(value: str) -> Phrase:
    text = written(value)
    return Phrase(text) if text else Phrase(None, "a place whose article is not known")


def _award(value: str) -> Phrase:
    if match := re.match(r"(?:Fellow|Foreign Member|Member) of (the [A-Z].*)$", value):
        return Phrase(match.group(1))  # sources call foreign members fellows; both are elected
    if not _AWARD.search(value) or value.startswith(("The ", "List ")):
        return Phrase(None, "not the name of an award")
    return Phrase(f"the {value}")


def _person(value: str) -> Phrase:
    words = value.split()
    if len(words) < 2 or not all(word[0].isupper() or word in _PARTICLES for word in words):
        return Phrase(None, "not a person's full name")
    return Phrase(value)


_PARTICLES = {
    "van",
    "von",
    "der",
    "den",
    "de",
    "du",
    "da",
    "la",
    "le",
    "ter",
    "ten",
    "zu",
    "af",
    "al",
    "bin",
    "ibn",
    "y",
}
