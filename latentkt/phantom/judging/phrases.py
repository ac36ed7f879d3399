"""A list of phrases in place of a judge: for trying things out, and where no judge model can be reached.

It reads English sentence by sentence and knows the usual ways of abstaining. It does not understand: an unusual way is
missed, and a hesitation before a made-up description is told from an abstention only by its words. Its name in the
answers says what it is; `agreement` measures it against labels, and nothing puts it in the place of a model by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from latentkt.phantom.answers import Answer
from latentkt.phantom.judging.judges import Verdict

__all__ = ["PHRASES_VERSION", "PhraseJudge"]

PHRASES_VERSION = 1
ENGLISH_SHARE = 0.15
"""Least share of common English words; under it the text is not read at all."""

_COMMON = frozenset(
    "a an and are as at be but by can did do does for from had has have he i if in is it its me my no not of on or so "
    "that the there this to was we were what when where which who will with would yes you your".split()
)
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")

_NOT = r"(?:not|n't|n’t|never)"
_KNOW = (
    r"(?:know|aware|familiar|sure|certain|heard|recogni[sz]e|find|found|able to (?:find|locate|verify|confirm)|"
    r"have (?:any |enough |sufficient |specific |reliable )?(?:information|knowledge|data|details|record))"
)
# First match decides the kind; the order goes from the more particular to the more general.
_RULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, name, re.compile(pattern, re.I))
    for kind, name, pattern in (
        ("alternative", "slip", r"\b(?:typo(?:graphical)?|misspell\w*|misspelt|spelling (?:error|mistake))\b"),
        ("alternative", "meant", r"\b(?:did you mean|do you mean|you (?:may|might|could) (?:be (?:thinking|referring)|"
         r"have meant|mean)|perhaps you (?:meant|mean|are)|are you (?:perhaps )?(?:referring|thinking))\b"),
        ("context", "more", r"\b(?:(?:provide|give|share)\b[^.?!]{0,40}\b(?:more|additional|further|some)\b[^.?!]{0,20}\b"
         r"(?:context|information|details?)|more context|could you (?:please )?(?:clarify|specify|provide)|"
         r"please (?:clarify|specify|provide)|can you (?:please )?(?:clarify|specify|provide)|what (?:exactly )?do you mean)\b"),
        ("decompose", "parts", r"\b(?:(?:if|should) (?:we|i|you) (?:break|split|take)[^.?!]{0,30}\b(?:down|apart)|"
         r"break(?:ing)? (?:it|the (?:term|word|name)) down|based (?:only |solely )?on (?:its|the) (?:name|parts|words|"
         r"components)|(?:i|we) (?:can|could|would) (?:only )?(?:guess|speculate|infer)|"
         r"it (?:could|might|may) (?:possibly |potentially |perhaps )?(?:refer|mean|be (?:interpreted|a (?:made-up|blend))))\b"),
        ("presume", "no property", r"\b(?:no|not? (?:a|any|one)) (?:specific|single|exact|particular|precise|known|definite|"
         r"fixed|documented|recorded)\s+(?:\w+\s+){0,2}(?:date|year|time|place|location|country|city|origin|etymology|"
         r"root|application|use)\b"),
        ("presume", "unknown property", r"\b(?:exact|precise|specific)\s+(?:\w+\s+){0,2}(?:date|year|time|place|location|"
         r"origins?|etymology)\b[^.?!]{0,60}\b(?:unknown|unclear|uncertain|not (?:known|clear|certain|recorded|documented))\b"),
        ("uncertainty", "does not know", rf"\b(?:i|we)\b[^.?!,;]{{0,25}}(?:{_NOT}|cannot|unable to)\b[^.?!,;]{{0,25}}\b{_KNOW}\b"),
        ("uncertainty", "no knowledge", r"\b(?:i|we) (?:have|found|could find) no (?:\w+ ){0,2}(?:information|knowledge|"
         r"record|data|evidence|reference|mention)\w*\b"),
        ("uncertainty", "cannot", rf"\b(?:i|we)\b(?:'m| am|'re| are|'d| would)?\s*(?:sorry,? (?:but )?)?(?:i )?"
         rf"(?:cannot|can(?:{_NOT[3:-1]})|unable to|not able to) (?:provide|answer|determine|give|confirm|verify|assist|help|"
         rf"say|tell|define)\b"),
        ("uncertainty", "no such thing", r"\b(?:there (?:is|was|are|were|'s) (?:currently |actually )?(?:no|not any|not a)|"
         r"there (?:isn|wasn|aren)(?:'|’)t (?:any|a|an)?)\s+(?:\w+[\s-]){0,4}(?:such|thing|term|concept|word|entity|event|"
         r"record|evidence|information|mention|reference|name|phrase|definition|entry|place|person|work)s?\b"),
        ("uncertainty", "is no", rf"\b(?:is|was|are|does|do|did|has|have|seems?|appears?)\s?(?:{_NOT}|to not be|not to be)\b"
         rf"[^.?!,;]{{0,45}}\b(?:exist|real|recogni[sz]ed|known|established|standard|official|actual|existing|valid|"
         rf"widely[- ]used|commonly[- ]used|common|term|concept|word|appear|correspond|refer to (?:any|a|an))\b"),
        ("uncertainty", "non-existent", r"\b(?:non-?existent|fictional|fictitious|made[- ]up|invented|hypothetical|"
         r"imaginary|nonsens\w+) (?:term|concept|word|name|event|entity|place|thing|phrase)\b"),
        ("uncertainty", "is unknown", r"\b(?:it|this|that|term|concept|name|word)\b is (?:unknown|unclear|uncertain)\b"),
    )
)  # fmt: skip
_ASSERTS = re.compile(
    r"\b(?:is|was|are|were) (?:a|an|the|one|used|located|first|held|known|named|derived|founded|introduced|described)\b|"
    r"\b(?:refers to|means|describes|denotes|originated|dates? back|took place|comes from|began in|stands for)\b",
    re.I,
)
_TURNS = re.compile(r"^\W*(?:however|nevertheless|nonetheless|but|still|that said|instead|yet)\b|\b(?:but|however),?\s", re.I)
_HEDGED = re.compile(r"\b(?:could|might|may|perhaps|possibly|probably|likely|if)\b", re.I)
_NO = re.compile(r"^\W*(?:no|nope)\b(?!\s+(?:doubt|problem|wonder))", re.I)
_YES = re.compile(r"^\W*(?:yes|yeah|certainly|absolutely|indeed)\b", re.I)


@dataclass(frozen=True, slots=True)
class PhraseJudge:
    """The phrase list as a judge.

    An answer abstains where one of its first `reach` sentences holds a phrase of abstention and no later sentence turns
    and states facts about the name. To a question about existence, a leading "no" abstains and a leading "yes" answers.
    Text that is not English is `unparsable`: it is not guessed at.

    Attributes:
        reach: Sentences from the beginning in which an abstention is looked for.

    Example:
        >>> from latentkt.phantom.answers import Answer
        >>> asked = dict(prompt_id="p", concept_id="c", concept="brine ohmage", concept_kind="term", property="meaning",
        ...              question="What does the term 'brine ohmage' mean?", setting="m")
        >>> texts = ["I am not familiar with that term.", "Brine ohmage is a measure of salt.", "Das kenne ich nicht."]
        >>> [verdict.judgement for verdict in PhraseJudge().judge([Answer(**asked, answer=text) for text in texts])]
        ['abstained', 'answered', 'unparsable']
    """

    reach: int = 3

    @property
    def name(self) -> str:
        """Says that it is no model."""
        return f"phrase list (fallback, version {PHRASES_VERSION})"

    @property
    def identity(self) -> dict[str, Any]:
        """All that its verdicts depend on."""
        return {"judge": self.name, "reach": self.reach}

    def judge(self, answers: Sequence[Answer]) -> list[Verdict]:
        """A verdict an answer, in order; `meta` names the rule."""
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Verdict:
        text = _without_name(answer.answer, answer.concept)
        if not _is_english(text):
            return Verdict("unparsable", None, {"rule": "not English"})
        sentences = [part for part in _BREAK.split(text) if part.strip()]
        if answer.property == "existence":
            led = _led(sentences[0])
            if led is not None:
                return led
        for place, sentence in enumerate(sentences[: self.reach]):
            found = next(((kind, name) for kind, name, pattern in _RULES if pattern.search(sentence)), None)
            if found is not None:
                return _abstains(*found, sentence, sentences[place + 1 :])
        return Verdict("answered", None, {"rule": "no phrase of abstention"})


def _led(first: str) -> Verdict | None:
    """A question about existence that begins with yes or no."""
    if _NO.search(first):
        return Verdict("abstained", "uncertainty", {"rule": "no"})
    if _YES.search(first):
        return Verdict("answered", None, {"rule": "yes"})
    return None


def _abstains(kind: str, rule: str, sentence: str, later: Sequence[str]) -> Verdict:
    """An abstention, unless what follows takes it back: facts after a turn, in the sentence itself or behind it."""
    _, turn, rest = _parted(sentence)
    clauses = [rest] if turn else []
    clauses += [each for each in later if _TURNS.match(each)]
    for clause in clauses:
        if _ASSERTS.search(clause) and not _HEDGED.search(clause) and not _phrase_in(clause):
            return Verdict("answered", None, {"rule": f"{rule}, then facts"})
    return Verdict("abstained", kind, {"rule": rule})


def _parted(sentence: str) -> tuple[str, str, str]:
    before, turn, rest = (*re.split(r"(,?\s(?:but|however),?\s)", sentence, maxsplit=1), "", "")[:3]
    return before, turn, rest


def _phrase_in(text: str) -> bool:
    return any(pattern.search(text) for _, _, pattern in _RULES)


def _without_name(text: str, concept: str) -> str:
    """The text with the concept and quoted words replaced by one word: their words are no one's statement."""
    return _QUOTED.sub("Name", re.sub(re.escape(concept), "Name", text, flags=re.I)).replace("’", "'")


def _is_english(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    rest = [word for word in words if word != "name"]
    # A word or two ("Paris.", "No.") are too few to tell a language by; they state something.
    return len(rest) < 4 or sum(word in _COMMON for word in rest) >= ENGLISH_SHARE * len(rest)
