"""What the phrase list looks for: ways of abstaining in English, each a pattern under the kind that it speaks for.

The order goes from the more particular to the more general; the first that matches a sentence decides its kind.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["ASSERTS", "COMMON", "HEDGED", "NO", "RULES", "TURN", "YES", "Rule"]


class Rule(NamedTuple):
    """A way of abstaining."""

    kind: str
    name: str
    pattern: re.Pattern[str]


def _rule(kind: str, name: str, *alternatives: str) -> Rule:
    return Rule(kind, name, re.compile(rf"\b(?:{'|'.join(alternatives)})", re.I))


_NOT = r"(?:not|never|cannot|can't|don't|doesn't|didn't|haven't|couldn't|wasn't|isn't|am not|unable to)"
_PROPERTY = r"(?:date|year|time|place|location|country|city|origins?|etymology|roots?|applications?|uses?)"
_THING = (
    r"(?:thing|term|concept|word|entity|event|record|evidence|information|mention|reference|name|phrase|definition|"
    r"entry|place|person|work)s?"
)
_DEFINITE = r"(?:specific|single|exact|particular|precise|known|definite|fixed|documented|recorded)"
_CANNOT = r"(?:cannot|can not|can't|couldn't|unable to|not able to)"
_KNOWN = (
    r"(?:exist|exists|real|recogni[sz]ed|known|established|standard|official|actual|existing|valid|"
    r"widely[- ]used|widely[- ]known|commonly[- ]used|common|appear|correspond)"
)
_KNOWS = (
    r"(?:know|aware of|familiar with|sure (?:what|if|about|of)|certain|heard of|recogni[sz]e|find|"
    r"able to (?:find|locate|verify|confirm)|"
    r"have (?:any |enough |sufficient |specific |reliable |access to )*(?:information|knowledge|data|details|record))"
)
_WORDS = r"(?:[\w-]+\s+){0,4}"
_ASKED = r"(?:provide|answer|determine|give|confirm|verify|assist|help|say|tell|define)"
_PLEASE = r"(?:could you|can you|please|would you)(?: please)?"

RULES: tuple[Rule, ...] = (
    _rule("alternative", "slip", r"typo(?:graphical)?\b", r"misspell\w*", r"misspelt\b", r"spelling (?:error|mistake)"),
    _rule(
        "alternative",
        "meant",
        r"d(?:id|o) you mean\b",
        r"you (?:may|might|could) (?:be (?:thinking|referring)|have meant|mean)\b",
        r"perhaps you (?:meant|mean|are)\b",
        r"are you (?:perhaps )?(?:referring|thinking)\b",
    ),
    _rule(
        "context",
        "more",
        rf"{_PLEASE} (?:clarify|specify|elaborate)\b",
        rf"{_PLEASE} (?:provide|give|share)\b[^.?!]{{0,40}}\b(?:more|additional|further|context|details?)\b",
        r"(?:provide|give|share)\b[^.?!]{0,20}\b(?:more|additional|further)\b[^.?!]{0,20}\b(?:context|information|details?)\b",
        r"what (?:exactly )?do you mean\b",
    ),
    _rule(
        "decompose",
        "parts",
        r"(?:if|should) (?:we|i|you) (?:break|split|take)\b[^.?!]{0,30}\b(?:down|apart)\b",
        r"break(?:ing)? (?:it|the (?:term|word|name)) down\b",
        r"based (?:only |solely )?on (?:its|the) (?:name|parts|words|components)\b",
        r"(?:i|we) (?:can|could|would) (?:only )?(?:guess|speculate|infer)\b",
        r"it (?:could|might|may) (?:possibly |potentially |perhaps )?(?:refer to|mean|be interpreted)\b",
    ),
    _rule(
        "presume",
        "no property",
        rf"(?:no|not (?:a|any|one)) {_DEFINITE}\s+(?:\w+\s+){{0,2}}{_PROPERTY}\b",
    ),
    _rule(
        "presume",
        "unknown property",
        rf"(?:exact|precise|specific)\s+(?:\w+\s+){{0,2}}{_PROPERTY}\b[^.?!]{{0,60}}\b"
        r"(?:unknown|unclear|uncertain|not (?:known|clear|certain|recorded|documented))\b",
    ),
    _rule("uncertainty", "does not know", rf"(?:i|we|i'm)\b[^.?!,;]{{0,25}}{_NOT}\b[^.?!,;]{{0,25}}\b{_KNOWS}"),
    _rule(
        "uncertainty",
        "no knowledge",
        r"(?:i|we) (?:have|found|could find|know of|am aware of) no\b",
        r"(?:i|we) (?:lack|am unaware)\b",
    ),
    _rule(
        "uncertainty",
        "cannot",
        rf"(?:i|we)(?:'m| am|'re| are)?\b[^.?!,;]{{0,20}}{_CANNOT} {_ASKED}\b",
    ),
    _rule(
        "uncertainty",
        "no such thing",
        rf"there (?:is|was|are|were) (?:currently |actually )?(?:no|not any|not a)\s+{_WORDS}(?:such|{_THING})\b",
        rf"there (?:isn't|wasn't|aren't|weren't) (?:any|an?)\s+{_WORDS}(?:such|{_THING})\b",
        r"no such (?:thing|term|concept|word|event|place)\b",
    ),
    _rule(
        "uncertainty",
        "is no",
        rf"(?:is|was|are|were|does|do|did|has|have)(?: not|n't)\b[^.?!,;]{{0,45}}\b{_KNOWN}\b",
        r"(?:seems?|appears?) (?:to not|not to) (?:be|exist)\b",
        r"is(?: not|n't) (?:a|an) (?:\w+ )?(?:term|concept|word|thing|event|place)\b",
    ),
    _rule(
        "uncertainty",
        "non-existent",
        r"(?:non-?existent|fictional|fictitious|made[- ]up|invented|hypothetical|imaginary|nonsens\w+)\s"
        r"(?:term|concept|word|name|event|entity|place|thing|phrase)\b"
        r"(?!\s(?:\w+\s){0,2}(?:coined|created|made|invented|by|from|in|set|used))",
    ),
    _rule("uncertainty", "is unknown", r"(?:it|this|that|term|concept|name|word) is (?:unknown|unclear|uncertain)\b"),
)

ASSERTS = re.compile(
    r"\b(?:is|was|are|were) (?:a|an|the|one|used|located|first|held|known|named|derived|founded|introduced)\b|"
    r"\b(?:refers to|means|describes|denotes|originated|dates? back|took place|comes from|began in|stands for)\b|"
    r"\b(?:was|were|has been|have been) (?:\w+ed|held|known|found|set|in use)\b|\b(?:in|since) (?:1\d|20)\d\d\b",
    re.I,
)
"""States something as a fact."""

HEDGED = re.compile(r"\b(?:could|might|may|perhaps|possibly|probably|likely|if)\b", re.I)
TURN = re.compile(r"(?:^\W*|[,;]\s*)(?:however|nevertheless|nonetheless|but|still|that said|instead|yet)\b,?\s", re.I)
"""What comes behind it takes back, or qualifies, what stood before."""

NO = re.compile(r"^\W*(?:no|nope)\b(?!\s+(?:doubt|problem|wonder))", re.I)
YES = re.compile(r"^\W*(?:yes|yeah|certainly|absolutely|indeed)\b", re.I)

COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "so",
        "that",
        "the",
        "there",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "yes",
        "you",
        "your",
    ]
)
"""Words by which English is known."""
