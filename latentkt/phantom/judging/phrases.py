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
from latentkt.phantom.judging.phrase_rules import ASSERTS, COMMON, HEDGED, NO, RULES, TURN, YES, Rule

__all__ = ["PHRASES_VERSION", "PhraseJudge"]

PHRASES_VERSION = 3
ENGLISH_SHARE = 0.15
"""Least share of common English words; under it the text is not read at all."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")


@dataclass(frozen=True, slots=True)
class PhraseJudge:
    """The phrase list as a judge.

    An answer abstains where one of its first `reach` sentences holds a phrase of abstention, no sentence before it
    states facts, and nothing behind a turn ("however", "but") does. To a question about existence, a leading "no"
    abstains and a leading "yes" answers. Text that is not English is `unparsable`: it is not guessed at.

    Attributes:
        reach: Sentences from the beginning in which an abstention is looked for.

    Example:
        >>> from latentkt.phantom.answers import Answer
        >>> asked = dict(prompt_id="p", concept_id="c", concept="brine ohmage", concept_kind="term", property="meaning",
        ...              question="What does the term 'brine ohmage' mean?", setting="m")
        >>> texts = ["I am not familiar with it.", "Brine ohmage is a measure of salt.", "Das Wort kenne ich nicht."]
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
        if answer.property == "existence" and sentences:
            if NO.search(sentences[0]):
                return Verdict("abstained", "uncertainty", {"rule": "no"})
            if YES.search(sentences[0]):
                return Verdict("answered", None, {"rule": "yes"})
        for place, sentence in enumerate(sentences[: self.reach]):
            rule = _rule_in(sentence)
            if rule is not None:
                return _abstains(rule, sentence, sentences[place + 1 :])
            if _states(sentence):
                return Verdict("answered", None, {"rule": "facts first"})
        return Verdict("answered", None, {"rule": "no phrase of abstention"})


def _rule_in(text: str) -> Rule | None:
    return next((rule for rule in RULES if rule.pattern.search(text)), None)


def _states(text: str) -> bool:
    return ASSERTS.search(text) is not None and HEDGED.search(text) is None


def _abstains(rule: Rule, sentence: str, later: Sequence[str]) -> Verdict:
    """An abstention, unless facts behind a turn take it back, in the sentence itself or after it."""
    match = rule.pattern.search(sentence)
    behind = TURN.split(sentence[match.end() :], maxsplit=1)[1:] if match else []
    behind += [each for each in later if TURN.match(each)]
    for clause in behind:
        if _states(clause) and _rule_in(clause) is None:
            return Verdict("answered", None, {"rule": f"{rule.name}, then facts"})
    return Verdict("abstained", rule.kind, {"rule": rule.name})


def _without_name(text: str, concept: str) -> str:
    """The text with the concept and quoted words replaced by one word: their words are nobody's statement."""
    plain = text.replace("’", "'")
    return _QUOTED.sub("Name", re.sub(re.escape(concept), "Name", plain, flags=re.I))


def _is_english(text: str) -> bool:
    words = [word for word in re.findall(r"[^\W\d_]+", text.lower()) if word != "name"]
    letters = "".join(words)
    if sum(letter.isascii() for letter in letters) < len(letters) / 2:
        return False  # another script, which may write a whole sentence as one word
    # A word or two ("Paris.", "No.") are too few to tell a language by; they state something.
    return len(words) < 4 or sum(word in COMMON for word in words) >= ENGLISH_SHARE * len(words)
