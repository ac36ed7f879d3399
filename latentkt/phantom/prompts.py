"""The questions asked about a concept: about its existence, or about a property that presumes it."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.phantom.concepts import Concept
from latentkt.results import read_json_lines, write_json_lines

__all__ = [
    "BASIC",
    "POOLS",
    "PROPERTIES",
    "Pools",
    "Prompt",
    "load_pools",
    "load_prompts",
    "make_prompts",
    "save_prompts",
]

Pools = Mapping[str, Mapping[str, Sequence[str]]]

BASIC = ("existence", "meaning", "date", "place")
"""Properties that terms and entities have; the others exist for terms alone."""

POOLS: Pools = {
    "existence": {
        "term": (
            'Does the term "{concept}" exist?',
            'Is "{concept}" an established term?',
            'Do specialists really use the term "{concept}"?',
            'Is there a concept that is called "{concept}"?',
            'I came across the term "{concept}". Is it a real one?',
        ),
        "entity": (
            'Does "{concept}" exist?',
            'Is there, or was there ever, something named "{concept}"?',
            'Is "{concept}" the name of something real?',
            'Somebody mentioned "{concept}" to me. Is that a real thing?',
            'Do you know whether "{concept}" exists?',
        ),
    },
    "meaning": {
        "term": (
            'What does the term "{concept}" mean?',
            'Please define "{concept}".',
            'How would you explain "{concept}" to a student?',
            'Give a short definition of the term "{concept}".',
            'In one or two sentences: what is meant by "{concept}"?',
        ),
        "entity": (
            'What is "{concept}"?',
            'Please describe "{concept}" briefly.',
            'What should one know about "{concept}"?',
            'Explain in one or two sentences what "{concept}" is.',
            'What does the name "{concept}" stand for?',
        ),
    },
    "date": {
        "term": (
            'When did the term "{concept}" come into use?',
            'In which year was "{concept}" first described?',
            'From what time does the term "{concept}" date?',
            'When was the expression "{concept}" coined?',
            'How long has the term "{concept}" been in use?',
        ),
        "entity": (
            'When did "{concept}" begin?',
            'In which year was "{concept}"?',
            'What date belongs to "{concept}"?',
            'From what time does "{concept}" date?',
            'When did people first hear of "{concept}"?',
        ),
    },
    "place": {
        "term": (
            'Where was "{concept}" first described?',
            'In which country did the term "{concept}" arise?',
            'Where would one come across "{concept}"?',
            'At which place was "{concept}" first studied?',
            'Where does the term "{concept}" come from geographically?',
        ),
        "entity": (
            'Where was "{concept}"?',
            'In which place did "{concept}" happen?',
            'With which country or city is "{concept}" connected?',
            'Where is the home of "{concept}"?',
            'Where would I have to go for "{concept}"?',
        ),
    },
    "etymology": {
        "term": (
            'Where does the word "{concept}" come from, linguistically?',
            'Which older words is "{concept}" built from?',
            'Why is "{concept}" called so?',
            'Explain the origin of the name "{concept}".',
            'What did the parts of the name "{concept}" mean originally?',
        ),
    },
    "application": {
        "term": (
            'What is "{concept}" used for in practice?',
            'Name the main benefit of "{concept}".',
            'In which situations does one need "{concept}"?',
            'Which problem does "{concept}" solve?',
            'Who works with "{concept}", and to what end?',
        ),
    },
    "relation": {
        "term": (
            'Which concepts are closest to "{concept}"?',
            'How does "{concept}" differ from what came before it?',
            'With what is "{concept}" most easily confused?',
            'To which wider theory or field does "{concept}" belong?',
            'Name three things that are related to "{concept}".',
        ),
    },
}
"""Property -> kind -> phrasings, each with the slot `{concept}` once; written for this library."""

PROPERTIES = tuple(POOLS)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question about one concept.

    Attributes:
        id: `CONCEPT_ID/PROPERTY/VARIANT`.
        concept_id: Id of the concept.
        concept: Its text.
        kind: `term` or `entity`.
        property: What is asked.
        variant: Place of the phrasing in its pool, from 0.
        text: The question.
        span: Where the concept stands in the text: code points, start and end.
    """

    id: str
    concept_id: str
    concept: str
    kind: str
    property: str
    variant: int
    text: str
    span: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {**asdict(self), "span": list(self.span)}


def make_prompts(
    concepts: Iterable[Concept],
    *,
    properties: Sequence[str] = BASIC,
    per_property: int = 1,
    seed: int = 0,
    pools: Pools = POOLS,
) -> list[Prompt]:
    """Questions about concepts, phrasings drawn by seed without repetition within a property.

    What is drawn for a concept depends on its id, the property and the seed alone: other concepts, other properties
    and their order change nothing.

    Args:
        concepts: The concepts.
        properties: What to ask; a property without a form for a kind (etymology, application and relation have none
            for entities) is not asked about concepts of that kind.
        per_property: Phrasings of each property.
        seed: Of the draw.
        pools: Property -> kind -> phrasings.

    Raises:
        InputError: A property is unknown, a pool is smaller than `per_property`, or none of the properties can be asked
            about one of the concepts.

    Example:
        >>> made = Concept.make("pericline circuit", kind="term", category="science")
        >>> [prompt.text for prompt in make_prompts([made], properties=["existence"])]
        ['I came across the term "pericline circuit". Is it a real one?']
    """
    _check_request(properties, per_property, pools)
    prompts = []
    for concept in concepts:
        asked = [name for name in properties if concept.kind in pools[name]]
        if not asked:
            raise InputError(
                f"nothing can be asked about {concept.concept!r}",
                expected=f"a property with a form for a concept of kind {concept.kind!r}",
                found=", ".join(properties),
            )
        for name in asked:
            pool = pools[name][concept.kind]
            rng = random.Random(_stream(seed, concept.id, name))
            prompts += [_prompt(concept, name, at, pool[at]) for at in rng.sample(range(len(pool)), per_property)]
    return prompts


def _stream(*parts: object) -> int:
    joined = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big")


def _prompt(concept: Concept, name: str, variant: int, template: str) -> Prompt:
    before, after = template.split("{concept}")
    span = (len(before), len(before) + len(concept.concept))
    text = before + concept.concept + after
    identity = f"{concept.id}/{name}/{variant}"
    return Prompt(identity, concept.id, concept.concept, concept.kind, name, variant, text, span)


def _check_request(properties: Sequence[str], per_property: int, pools: Pools) -> None:
    unknown = [name for name in properties if name not in pools]
    if unknown or not properties:
        raise InputError("unknown property", expected=f"some of {', '.join(pools)}", found=unknown or "none")
    if len(set(properties)) < len(properties):
        raise InputError("a property stands twice", found=", ".join(properties))
    smallest = min(len(pool) for name in properties for pool in pools[name].values())
    if not 1 <= per_property <= smallest:
        raise InputError("bad number of phrasings", expected=f"1 to {smallest}", found=per_property)


def load_pools(path: str | Path) -> Pools:
    """Read phrasings of one's own: JSON, `{PROPERTY: {"term"|"entity": [text with {concept} once, …]}}`.

    Raises:
        InputError: There is no such file.
        DataError: It is not of that form.
    """
    path = Path(path)
    try:
        pools = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", expected="a JSON file of phrasings") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON", found=error) from error
    if not isinstance(pools, dict) or not pools:
        raise DataError(f"{path}: no pools", expected='{PROPERTY: {"term"|"entity": [texts]}}', found=repr(pools)[:60])
    for name, forms in pools.items():
        _check_pool(forms, f"{path}: {name}")
    return pools


def _check_pool(forms: object, where: str) -> None:
    if not isinstance(forms, dict) or not forms or not forms.keys() <= {"term", "entity"}:
        raise DataError(where, expected='{"term"|"entity": [texts]}', found=repr(forms)[:60])
    for kind, pool in forms.items():
        good = isinstance(pool, list) and pool and all(isinstance(t, str) and t.count("{concept}") == 1 for t in pool)
        if not good:
            raise DataError(f"{where}, {kind}", expected="a list of texts with {concept} once", found=repr(pool)[:80])


def save_prompts(prompts: Iterable[Prompt], path: str | Path) -> int:
    """Write prompts as JSON lines; the number written.

    Raises:
        RunError: The disk is full or the folder cannot be written to.
    """
    return write_json_lines((prompt.to_dict() for prompt in prompts), path)


def load_prompts(path: str | Path) -> list[Prompt]:
    """Read prompts that `save_prompts` wrote.

    Raises:
        InputError: There is no such file.
        DataError: A row is no prompt; the message names file and line.
    """

    def parse(row: dict[str, Any], where: str) -> Prompt:
        try:
            prompt = Prompt(**{**row, "span": tuple(row.get("span", ()))})
            start, end = prompt.span
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: no prompt", expected="a row of save_prompts", found=str(error)[:120]) from error
        if prompt.text[start:end] != prompt.concept:
            raise DataError(f"{where}: the span misses the concept", expected=prompt.concept, found=prompt.text[:80])
        return prompt

    return list(read_json_lines(path, parse))
