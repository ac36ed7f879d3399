"""The answer that a reply gives, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from latentkt.trapqa.matching.forms import Named, forms, mark, normalise
from latentkt.trapqa.matching.reply import Reply
from latentkt.trapqa.matching.stance import Event, events, is_ironic

__all__ = ["Answer", "Match", "match_answer", "match_truth"]

Answer = Literal["correct", "shortcut", "off"]
Rule = Literal["exact", "number", "stated", "empty", "none", "both", "ironic"]
_SIDE: dict[str, Answer] = {"c": "correct", "s": "shortcut"}
_EXACT = re.compile(
    r"(?:(?:the |my |final |correct )*answer(?: is|:| -| —)* ?)?(?:[12ab][.):] ?|[-—•] )?\"?(@[cs])\"?[ .!\"]*"
)
_NUMBER = re.compile(r"(?:option |number |answer:? )*\(?(?:(1|a)|2|b)[.)]*")
_UNFINISHED = re.compile(r"[^.!?\n]*$")


@dataclass(frozen=True, slots=True)
class Match:
    """What a reply was matched to.

    Attributes:
        answer: `correct`, `shortcut`, or `off`: neither, or not to be told.
        rule: Why. `exact`: the reply is one candidate and nothing else. `number`: it is the number or letter of one.
            `stated`: one candidate is given as the answer. Off: `empty`, `none` (no candidate is given), `both`
            (two are, and neither is taken back), `ironic`.
        truncated: Whether a limit cut the reply off.
    """

    answer: Answer
    rule: Rule
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    aliases: tuple[str, ...]


_YES = _Word("yes", ("true", "yep", "yeah"))
_NO = _Word("no", ("false", "nope"))


def match_answer(
    reply: Reply | str, correct: Named, shortcut: Named, *, numbered: tuple[Answer, Answer] | None = None
) -> Match:
    """Match a reply to one of two candidates.

    Args:
        reply: The reply, without its reasoning (see `read_reply`).
        correct: The item's correct answer: its text and aliases.
        shortcut: The item's shortcut answer.
        numbered: Which of the two stands first and which second, where the prompt numbers them (1, 2 or A, B); a
            reply that is only such a number or letter is matched then.

    Raises:
        InputError: A candidate has no letters.

    Example:
        >>> from latentkt.trapqa import Candidate
        >>> who = Candidate("Arthur Eddington"), Candidate("Albert Einstein", aliases=("A. Einstein",))
        >>> match_answer("albert  EINSTEIN.", *who).answer
        'shortcut'
        >>> match_answer("It cannot be Einstein, who won it. The answer is Eddington.", *who).answer
        'correct'
        >>> match_answer("It cannot be Albert Einstein.", *who)
        Match(answer='off', rule='none', truncated=False)
    """
    reply = Reply(reply) if isinstance(reply, str) else reply
    text = normalise(reply.text)
    if not text:
        return Match("off", "empty", reply.truncated)
    marked = mark(text, forms(correct, shortcut), forms(shortcut, correct))
    exact, number = _EXACT.fullmatch(marked), _NUMBER.fullmatch(text)
    if exact:
        return Match(_SIDE[exact[1][1]], "exact", reply.truncated)
    if number and numbered is not None:
        return Match(numbered[0 if number[1] else 1], "number", reply.truncated)
    if is_ironic(marked):
        return Match("off", "ironic", reply.truncated)
    if reply.truncated:  # its last words could have gone on in any way
        marked = _UNFINISHED.sub("", marked)
    actions = correct.text[:1].islower() and shortcut.text[:1].islower()
    return Match(*_decide(list(events(marked, actions=actions))), truncated=reply.truncated)


def match_truth(reply: Reply | str) -> tuple[bool | None, Match]:
    """Match a reply to yes or no.

    Returns:
        True for yes, False for no, None where it is neither; and the match, in which `correct` stands for yes.

    Example:
        >>> match_truth("No, he never won it.")[0], match_truth("Yes and no.")[0]
        (False, None)
    """
    match = match_answer(reply, _YES, _NO)
    return {"correct": True, "shortcut": False, "off": None}[match.answer], match


def _decide(found: Sequence[Event]) -> tuple[Answer, Rule]:
    """The one candidate that the strongest statements give, after what was taken back is gone."""
    standing: list[Event] = []
    retracted = False
    for event in found:
        if event.act == "retract":
            retracted = True
        elif event.act == "deny":
            standing = [each for each in standing if each.candidate != event.candidate]
        else:
            if retracted:
                standing = [each for each in standing if each.candidate == event.candidate]
            standing.append(event)
            retracted = False
    strongest = max((event.strength for event in standing), default=0)
    given = {event.candidate for event in standing if event.strength == strongest}
    if len(given) == 1:
        return _SIDE[given.pop()], "stated"
    return "off", ("both" if given else "none")
