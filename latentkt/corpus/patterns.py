"""The patterns contract: which surface forms stand for which key and which task.

A pattern file is JSON: ``{"keys": {NAME: [forms]}, "tasks": {NAME: [forms]}, "exclude": {NAME: [forms]},
"pairs": [[KEY, KEY], …]}``. A form is literal text unless written ``{"regex": "…"}``; the forms under ``exclude``
cancel the matches of the same name that they overlap; ``pairs`` names keys whose joint occurrence is wanted as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError

__all__ = ["Form", "Patterns", "find_patterns", "load_patterns", "path_name", "split_path"]

_SECTIONS = ("keys", "tasks", "exclude", "pairs")


@dataclass(frozen=True, slots=True, order=True)
class Form:
    """One surface form of a name.

    Attributes:
        text: Literal text (white-space runs count as one space), or a regular expression of the module `re`.
        regex: Whether `text` is a regular expression.
    """

    text: str
    regex: bool = False

    @classmethod
    def parse(cls, raw: object, *, where: str) -> Form:
        """Read one form as it stands in the JSON file.

        Raises:
            DataError: The form is neither text nor ``{"regex": …}``, is empty, has no word character, or does not
                compile.
        """
        if isinstance(raw, Form):
            raw = raw.to_json()
        if isinstance(raw, str):
            return cls._literal(raw, where)
        if isinstance(raw, Mapping) and set(raw) == {"regex"} and isinstance(raw["regex"], str):
            return cls._regex(raw["regex"], where)
        raise DataError(f"{where}: not a form", expected='text or {"regex": "…"}', found=repr(raw)[:80])

    @classmethod
    def _literal(cls, raw: str, where: str) -> Form:
        text = " ".join(raw.split())
        if not text:
            raise DataError(f"{where}: an empty form", expected="text with a word character", found=repr(raw))
        if not re.search(r"\w", text):
            raise DataError(
                f"{where}: a form of punctuation only",
                expected="at least one letter, digit or underscore",
                found=repr(raw),
                fix="add the word that it belongs to, or use a regex form",
            )
        return cls(text)

    @classmethod
    def _regex(cls, raw: str, where: str) -> Form:
        try:
            compiled = re.compile(raw)
        except re.error as error:
            raise DataError(
                f"{where}: the regular expression does not compile",
                expected="a pattern of `re`",
                found=f"{raw}: {error}",
            ) from error
        if compiled.match(""):
            raise DataError(
                f"{where}: the regular expression matches empty text", found=raw, fix="make a part required"
            )
        return cls(raw, regex=True)

    def to_json(self) -> str | dict[str, str]:
        """The form as it stands in the JSON file."""
        return {"regex": self.text} if self.regex else self.text


def path_name(key: str, task: str) -> str:
    """The name ``KEY:TASK`` of a path.

    Example:
        >>> path_name("darwin", "evolution")
        'darwin:evolution'
    """
    return f"{key}:{task}"


def split_path(path: str) -> tuple[str, str]:
    """The key and the task of ``KEY:TASK``.

    Raises:
        InputError: The text does not hold exactly one colon with a name on either side.

    Example:
        >>> split_path("darwin:evolution")
        ('darwin', 'evolution')
    """
    key, _, task = path.partition(":")
    if not key or not task or ":" in task:
        raise InputError("not a path", expected="KEY:TASK", found=repr(path))
    return key, task


@dataclass(frozen=True)
class Patterns:
    """Keys, tasks, exclusions and key pairs, checked.

    Attributes:
        keys: Name of each key -> its forms, in the order of the file.
        tasks: Name of each task -> its forms.
        exclude: Name of a key or task -> forms that cancel its matches where they overlap.
        pairs: Pairs of keys whose joint occurrence is counted too.

    Example:
        >>> patterns = Patterns.from_dict({"keys": {"darwin": ["Darwin"]}, "tasks": {"evolution": ["evolution"]}})
        >>> patterns.paths()
        ('darwin:evolution',)
    """

    keys: Mapping[str, tuple[Form, ...]]
    tasks: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)
    exclude: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "patterns") -> Patterns:
        """Check the content of a pattern file.

        Args:
            data: The parsed JSON object.
            where: What to call it in messages.

        Raises:
            DataError: Unknown sections, bad names, bad forms, exclusions or pairs of unknown names, no keys.
        """
        if not isinstance(data, Mapping):
            raise DataError(
                f"{where}: not a pattern file", expected=f"an object with {_SECTIONS}", found=type(data).__name__
            )
        unknown = sorted(set(data) - set(_SECTIONS))
        if unknown or "keys" not in data:
            raise DataError(
                f"{where}: wrong sections",
                expected=f"'keys' and any of {_SECTIONS[1:]}",
                found=sorted(data),
                fix="rename",
            )
        keys, tasks, exclude = (_section(data.get(name, {}), f"{where}: {name}") for name in _SECTIONS[:3])
        if not keys:
            raise DataError(f"{where}: no keys", expected="at least one key with a form", found="an empty object")
        _known(exclude, {*keys, *tasks}, f"{where}: exclude")
        pairs = _pairs(data.get("pairs", ()), keys, f"{where}: pairs")
        return cls(keys, tasks, exclude, pairs)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `from_dict` reads back to an equal value."""
        named = {
            name: {key: [form.to_json() for form in forms] for key, forms in section.items()}
            for name, section in (("keys", self.keys), ("tasks", self.tasks), ("exclude", self.exclude))
        }
        return {**named, "pairs": [list(pair) for pair in self.pairs]}

    def save(self, path: str | Path) -> None:
        """Write the pattern file (to a temporary name, then renamed)."""
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        temporary.write_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        temporary.replace(target)

    @property
    def sha256(self) -> str:
        """Hash of the content, whatever the layout of the file."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def paths(self) -> tuple[str, ...]:
        """All ``KEY:TASK``, keys outermost."""
        return tuple(path_name(key, task) for key in self.keys for task in self.tasks)

    def check_path(self, path: str) -> tuple[str, str]:
        """The key and task of a path, both known here.

        Raises:
            InputError: The path names an unknown key or task.
        """
        key, task = split_path(path)
        for name, section, kind in ((key, self.keys, "key"), (task, self.tasks, "task")):
            if name not in section:
                raise InputError(f"unknown {kind} {name!r} in path {path!r}", expected=_some(section), found=name)
        return key, task

    def nested(self) -> dict[str, list[tuple[str, str]]]:
        """Names with a literal form inside another of their literal forms: such places count twice.

        Example:
            >>> Patterns.from_dict({"keys": {"d": ["Darwin", "Charles Darwin"]}}).nested()
            {'d': [('Darwin', 'Charles Darwin')]}
        """
        found = {}
        for name, forms in (*self.keys.items(), *self.tasks.items()):
            texts = sorted({form.text.lower() for form in forms if not form.regex}, key=lambda text: (len(text), text))
            original = {form.text.lower(): form.text for form in reversed(forms)}
            inside = [
                (original[short], original[long])
                for i, short in enumerate(texts)
                for long in texts[i + 1 :]
                if re.search(rf"(?<!\w){re.escape(short)}(?!\w)", long)
            ]
            if inside:
                found[name] = inside
        return found


def _section(raw: object, where: str) -> dict[str, tuple[Form, ...]]:
    if not isinstance(raw, Mapping):
        raise DataError(where, expected="an object {NAME: [forms]}", found=type(raw).__name__)
    section = {}
    for name, forms in raw.items():
        if not name or ":" in name:
            raise DataError(f"{where}: bad name", expected="a name without a colon", found=repr(name))
        if not isinstance(forms, Sequence) or isinstance(forms, str) or not forms:
            raise DataError(f"{where}: {name}", expected="a non-empty list of forms", found=repr(forms)[:80])
        parsed = (Form.parse(form, where=f"{where}: {name}") for form in forms)
        section[name] = tuple(dict.fromkeys(parsed))
    return section


def _known(names: Iterable[str], known: set[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise DataError(f"{where}: unknown name {name!r}", expected=_some(known), found=name)


def _pairs(raw: object, keys: Mapping[str, object], where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise DataError(where, expected="a list of [KEY, KEY]", found=type(raw).__name__)
    pairs = []
    for pair in raw:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise DataError(where, expected="two different keys: [KEY, KEY]", found=repr(pair)[:80])
        _known(pair, set(keys), where)
        pairs.append((pair[0], pair[1]))
    return tuple(dict.fromkeys(pairs))


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f", … ({len(listed)} names)" if len(listed) > 10 else "")


def load_patterns(path: str | Path) -> Patterns:
    """Read and check a pattern file.

    Raises:
        DataError: The file is missing, is not JSON, or breaks the contract (the message names the entry).
    """
    source = Path(path)
    try:
        data = json.loads(source.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except FileNotFoundError as error:
        raise DataError(f"no pattern file {source}", expected="an existing JSON file", found="nothing") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{source}: not a pattern file", expected="UTF-8 JSON", found=error) from error
    return Patterns.from_dict(data, where=source.name)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a name stands twice: {sorted({name for name in names if names.count(name) > 1})[:5]}")
    return data


def find_patterns(items: str | Path) -> Path | None:
    """The pattern file of an item file: ``NAME.patterns.json`` beside ``NAME.jsonl``, else ``patterns.json``."""
    source = Path(items)
    for candidate in (source.with_suffix(".patterns.json"), source.with_name("patterns.json")):
        if candidate.is_file():
            return candidate
    return None
