"""The eight families of everyday items and their scenes, as they stand in `families/*.toml`.

A scene is two options, a cue for each, and two ways to fill its `{which}`: `for_a` leaves option a alone, `for_b`
option b. So every scene gives two items that mirror each other: the cue of a with `for_b`, and the cue of b with
`for_a`. What is the right option of one is the shortcut of the other, and so is every constraint: neither tells the
answer.

Marks: `*word*` is the response in an option, the association cue in a cue sentence, the key in a constraint;
`[words]` is the span of the cue; `{person=Ada}` and `{distance=half a mile}` are places for other names and distances.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from latentkt.errors import DataError

__all__ = ["ASPECTS", "FAMILIES", "Family", "Marked", "Scene", "families", "read_marked", "read_scene"]

FAMILIES = (
    "vehicle_required",
    "delivery_medium",
    "recording_medium",
    "tool_required",
    "presence_required",
    "timing_order",
    "capacity_or_fit",
    "power_or_connection",
)
ASPECTS = (
    "transport",
    "home repair",
    "cleaning",
    "cooking",
    "health",
    "pets",
    "work",
    "school",
    "travel",
    "shopping",
    "sports",
    "music and arts",
    "paperwork",
)
Side = Literal["a", "b"]
_STAR = re.compile(r"\*([^*]+)\*")
_SPAN = re.compile(r"\[([^\[\]]+)\]")
_NEEDED = ("id", "aspect", "kind", "a", "b", "cue_a", "cue_b", "need", "for_a", "for_b", "ask", "why")
_LEVELS = ("rule", "so_a", "so_b", "no_a", "no_b")


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without its marks.

    Attributes:
        text: The text.
        word: What stood between stars, or nothing.
        span: Start and end of what stood in brackets, or None.
    """

    text: str
    word: str = ""
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Scene:
    """One scene.

    Attributes:
        id: Unique in its family.
        aspect: One of the aspects of daily life.
        kind: Kind of the constraint: physical, spatial, procedural or medium.
        option: Side -> the option, its response marked.
        cue: Side -> the sentence that brings that option to mind, its association cue marked and its span bracketed.
        need: The sentence with `{which}`.
        which: Side -> what in `{which}` leaves that option alone, its key marked.
        ask: The question, with `{option_a}` and `{option_b}`.
        why: Why the constraints decide.
        levels: Texts of the explicitness levels (`rule`, `so_a`, `so_b`, `no_a`, `no_b`), or nothing.
        source: Who wrote it.
    """

    id: str
    aspect: str
    kind: str
    option: Mapping[str, Marked]
    cue: Mapping[str, Marked]
    need: str
    which: Mapping[str, Marked]
    ask: str
    why: str
    levels: Mapping[str, str]
    source: str = "written for this project"


@dataclass(frozen=True)
class Family:
    """One family.

    Attributes:
        name: Its name.
        role: The scenario role.
        constraint: What decides.
        right_shape: Shape of the right option.
        shortcut_shape: Shape of the shortcut option.
        anchors: Responses that can be options of this family.
        scenes: The scenes that are written for it.
    """

    name: str
    role: str
    constraint: str
    right_shape: str
    shortcut_shape: str
    anchors: tuple[str, ...]
    scenes: tuple[Scene, ...]

    @property
    def metadata(self) -> dict[str, str]:
        """What a seed of this family is annotated with."""
        names = ("role", "constraint", "right_shape", "shortcut_shape")
        return {"family": self.name, **{name: getattr(self, name) for name in names}}


@cache
def families() -> tuple[Family, ...]:
    """The families that come with the package, in their usual order.

    Example:
        >>> [len(family.scenes) > 9 for family in families()] == [True] * 8
        True
    """
    folder = resources.files("latentkt.trapqa.build.everyday") / "families"
    return tuple(_family(tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))) for name in FAMILIES)


def read_marked(text: str, *, where: str) -> Marked:
    """Take the marks off a text.

    Raises:
        DataError: More than one word between stars, or more than one bracket.

    Example:
        >>> read_marked("There is [a jar of *nails*] here.", where="cue")
        Marked(text='There is a jar of nails here.', word='nails', span=(9, 23))
    """
    stars = _STAR.findall(text)
    if len(stars) > 1 or len(_SPAN.findall(text)) > 1:
        raise DataError(f"{where}: too many marks", expected="one *word* and one [span] at most", found=text)
    plain = _STAR.sub(r"\1", text)
    bracket = _SPAN.search(plain)
    if bracket is None:
        return Marked(plain, stars[0] if stars else "")
    start = bracket.start()
    inner = bracket.group(1)
    return Marked(
        plain[:start] + inner + plain[bracket.end() :], stars[0] if stars else "", (start, start + len(inner))
    )


def read_scene(record: Mapping[str, Any], *, where: str, source: str = "written for this project") -> Scene:
    """Check a scene.

    Raises:
        DataError: A field is missing, unknown or wrong, or a mark is not there.
    """
    missing = [name for name in _NEEDED if not str(record.get(name, "")).strip()]
    unknown = sorted(set(record) - {*_NEEDED, *_LEVELS})
    levels = {name: str(record[name]) for name in _LEVELS if name in record}
    if missing or unknown or len(levels) not in (0, len(_LEVELS)):
        expected = f"{', '.join(_NEEDED)}; all or none of {', '.join(_LEVELS)}"
        raise DataError(f"{where}: wrong fields", expected=expected, found=f"missing {missing}, unknown {unknown}")
    if record["aspect"] not in ASPECTS:
        raise DataError(f"{where}: aspect", expected=f"one of {', '.join(ASPECTS)}", found=record["aspect"])
    if record["kind"] not in ("physical", "spatial", "procedural", "medium"):
        raise DataError(f"{where}: kind", expected="physical, spatial, procedural or medium", found=record["kind"])
    if record["need"].count("{which}") != 1:
        raise DataError(f"{where}: need", expected="{which} once", found=record["need"])

    def sides(prefix: str, span: bool) -> dict[str, Marked]:
        marked = {s: read_marked(record[f"{prefix}{s}"], where=f"{where}: {prefix}{s}") for s in ("a", "b")}
        for side, each in marked.items():
            if not each.word or (each.span is None) == span:
                wanted = "a *word*" + (" and a [span]" if span else ", no [span]")
                raise DataError(f"{where}: {prefix}{side} lacks a mark", expected=wanted, found=record[prefix + side])
        return marked

    return Scene(
        id=record["id"],
        aspect=record["aspect"],
        kind=record["kind"],
        option=sides("", span=False),
        cue=sides("cue_", span=True),
        need=record["need"],
        which=sides("for_", span=False),
        ask=record["ask"],
        why=record["why"],
        levels=levels,
        source=source,
    )


def _family(data: Mapping[str, Any]) -> Family:
    name = data["family"]
    scenes = tuple(read_scene(scene, where=f"{name}, scene {scene.get('id')!r}") for scene in data["scene"])
    ids = [scene.id for scene in scenes]
    if len(set(ids)) < len(ids):
        raise DataError(f"{name}: a scene id occurs twice", found=sorted(ids))
    texts = ("role", "constraint", "right_shape", "shortcut_shape")
    return Family(name, **{each: data[each] for each in texts}, anchors=tuple(data["anchors"]), scenes=scenes)
