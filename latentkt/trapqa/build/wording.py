"""The words of the templates: how shared attributes and decisive statements are said, and how they are asked.

Facts are verb phrases that fit any subject ("studied at {}"). Statements come in pairs that differ in a few words of
equal number, one that denies and one that affirms, so that item and control are a minimal pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from latentkt.errors import DataError
from latentkt.trapqa.build.phrases import Shape
from latentkt.trapqa.build.statements import Kind

__all__ = ["CLAUSES", "FRAMES", "QUESTIONS", "WORDINGS", "Clause", "Wording", "read_wordings"]


@dataclass(frozen=True, slots=True)
class Wording:
    """How an attribute is said.

    Attributes:
        shape: How its values become words.
        facts: Verb phrases with a place for the value.
        base: The verb phrase after "did not".
    """

    shape: Shape
    facts: tuple[str, ...]
    base: str


@dataclass(frozen=True, slots=True)
class Clause:
    """How a statement is said of a subject.

    Attributes:
        text: A verb phrase with the places `{mark}` and `{topic}`.
        no: What stands at the mark where the statement is denied.
        yes: What stands there where it is affirmed.
        topic: The words for what the statement is about, with `{value}`, `{side}` and `{year}`.
    """

    text: str
    no: str
    yes: str
    topic: str


_ALMA = Wording(
    "institution", ("studied at {}", "was a student at {}", "was educated at {}", "attended {}"), "study at {}"
)
_WORK = Wording("institution", ("worked at {}", "held a post at {}", "was employed at {}"), "work at {}")
_FIELD = Wording("field", ("worked in {}", "made a career in {}", "was active in {}"), "work in {}")
_TOPIC = Wording(
    "topic", ("is known for work on {}", "is named in connection with {}", "did work on {}"), "do work on {}"
)
_AWARD = Wording("award", ("received {}", "was given {}", "was honoured with {}"), "receive {}")
_FELLOW = Wording("award", ("was elected to {}", "gained election to {}"), "gain election to {}")
_ADVISOR = Wording(
    "person", ("was a doctoral student of {}", "had {} as doctoral advisor", "took a doctorate under {}"),
    "take a doctorate under {}",
)  # fmt: skip
_STUDENT = Wording(
    "person", ("was doctoral advisor to {}", "had {} as a doctoral student"), "have {} as a doctoral student"
)
_TAUGHT = Wording("person", ("had {} as a student", "taught {}"), "teach {}")
_INFLUENCE = Wording("person", ("was influenced by {}", "took ideas from {}"), "take ideas from {}")
_BIRTH = Wording("place", ("was born in {}",), "come into the world in {}")

WORDINGS: dict[str, Wording] = {
    "alma_mater": _ALMA, "educated_at": _ALMA, "education": _ALMA,
    "workplace": _WORK, "employer": _WORK, "affiliation_name": _WORK,
    "field": _FIELD, "field_of_work": _FIELD,
    "known_for": _TOPIC, "notable_work": _TOPIC,
    "award": _AWARD, "award_received": _AWARD, "fellowship": _FELLOW,
    "doctoral_advisor": _ADVISOR, "student_of": _ADVISOR,
    "doctoral_student": _STUDENT, "notable_student": _TAUGHT, "student": _TAUGHT,
    "influenced_by": _INFLUENCE,
    "birth_place": _BIRTH, "place_of_birth": _BIRTH, "birth_city": _BIRTH, "birth_country": _BIRTH,
    "occupation": Wording("role", ("worked as {}", "was {} by profession"), "work as {}"),
    "instrument": Wording("plain", ("played the {}",), "play the {}"),
    "team": Wording("plain", ("played for {}",), "play for {}"),
    "member_of": Wording("institution", ("was a member of {}", "belonged to {}"), "belong to {}"),
}  # fmt: skip
"""Attribute -> how it is said. An attribute that is not here is not used in sentences."""

CLAUSES: dict[Kind, tuple[Clause, ...]] = {
    "award": (
        Clause("{mark} receive {topic}", "did not", "did indeed", "the {value}"),
        Clause("{mark} awarded {topic}", "was not", "was indeed", "the {value}"),
        Clause("{mark} win {topic}", "did not", "did indeed", "the {value}"),
        Clause("{mark} among those who received {topic}", "is not", "is indeed", "the {value}"),
        Clause("{mark} on the list of winners of {topic}", "is not", "is indeed", "the {value}"),
    ),
    "award_year": (
        Clause("{mark} receive the {value} {topic}", "did not", "did indeed", "{side} {year}"),
        Clause("{mark} awarded the {value} {topic}", "was not", "was indeed", "{side} {year}"),
        Clause("{mark} win the {value} {topic}", "did not", "did indeed", "{side} {year}"),
    ),
    "birth_year": (
        Clause("{mark} {topic}", "was not", "was indeed", "born {side} {year}"),
        Clause("{mark} {topic}", "did not", "did indeed", "come into the world {side} {year}"),
        Clause("{mark} among those {topic}", "is not", "is indeed", "born {side} {year}"),
    ),
    "death_year": (
        Clause("{mark} {topic}", "did not", "did indeed", "die {side} {year}"),
        Clause("{mark} among those who {topic}", "is not", "is indeed", "died {side} {year}"),
        Clause("{mark} {topic}", "did not", "did indeed", "pass away {side} {year}"),
    ),
    "birth_place": (
        Clause("{mark} {topic}", "was not", "was indeed", "born in {value}"),
        Clause("{mark} {topic}", "did not", "did indeed", "come into the world in {value}"),
        Clause("{mark} a native of {topic}", "is not", "is indeed", "{value}"),
    ),
    "attribute": (Clause("{mark} {topic}", "did not", "did indeed", "{base}"),),
}
"""Kind of statement -> ways to say it."""

QUESTIONS: dict[Kind, tuple[tuple[str, str], ...]] = {
    "award": (
        ("Did {name} receive the {value}?", "Is {name} absent from the list of winners of the {value}?"),
        ("Was {name} awarded the {value}?", "Is {name} one of those who never received the {value}?"),
    ),
    "award_year": (
        ("Did {name} receive the {value} {side} {year}?", "Did {name} receive the {value} in {year} or {other}?"),
    ),
    "birth_year": (("Was {name} born {side} {year}?", "Was {name} born in {year} or {other}?"),),
    "death_year": (("Did {name} die {side} {year}?", "Did {name} die in {year} or {other}?"),),
    "birth_place": (("Was {name} born in {value}?", "Was {name} born somewhere other than {value}?"),),
    "attribute": (("Did {name} {base}?", "Did {name} never {base}?"),),
}
"""Kind of statement -> pairs of probe questions: yes means that it holds, yes means that it does not."""

FRAMES: dict[str, tuple[str, ...]] = {
    "last": (
        "The {noun} in question {facts}, and {constraint}.",
        "We are looking for {a_noun} who {facts}, and who {constraint}.",
        "This {noun}, who {facts}, {constraint}.",
        "The description fits {a_noun} who {facts}; besides, the person meant {constraint}.",
        "We have {a_noun} in mind who {facts}, and who {constraint}.",
    ),
    "first": (
        "The {noun} in question {constraint}, and {facts}.",
        "We are looking for {a_noun} who {constraint}, and who {facts}.",
        "This {noun}, who {constraint}, {facts}.",
        "The person meant {constraint}; the description fits {a_noun} who {facts}.",
        "We have {a_noun} in mind who {constraint}, and who {facts}.",
    ),
}
"""Where the constraint stands -> sentences; every question then ends with "Who is this person?"."""


def read_wordings(data: Mapping[str, object]) -> dict[str, Wording]:
    """Further wordings, of a JSON object {attribute: {shape, facts: […], base}}.

    Raises:
        DataError: An entry is not of that form.

    Example:
        >>> read_wordings({"club": {"shape": "plain", "facts": ["ran for {}"], "base": "run for {}"}})["club"].base
        'run for {}'
    """
    found = {}
    for name, entry in data.items():
        try:
            wording = Wording(entry["shape"], tuple(entry["facts"]), entry["base"])  # type: ignore[index]
            fits = all(text.count("{}") == 1 for text in (*wording.facts, wording.base)) and wording.facts
        except (TypeError, KeyError, AttributeError):
            fits = False
        if not fits:
            expected = '{"shape": …, "facts": ["verb phrase with {}", …], "base": "verb phrase with {}"}'
            raise DataError(f"the wording of {name!r} is wrong", expected=expected, found=entry)
        found[name] = wording
    return found
