"""What each clause of a marked reply says about the candidates.

A clause can give a candidate as the answer (with one of three strengths), deny it, or only mention it: ask about it,
suppose it, quote it. The rules are few and plain; what they do not recognise is a mention, so that a reply which nobody
could read by such rules is matched to no candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "events", "is_ironic"]

Act = Literal["give", "deny", "retract"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing a reply does.

    Attributes:
        act: `give` a candidate as the answer, `deny` it, or `retract` what was said before.
        candidate: `c` or `s`; empty for `retract`.
        strength: 3: named as the answer or the choice. 2: stands alone in its clause, or is what to do. 1: "it is …".
    """

    act: Act
    candidate: str = ""
    strength: int = 0


_ANY = r"@[cs]"
_ADVERB = r"(?:definitely|clearly|certainly|probably|likely|therefore|thus|indeed|simply|of course|surely|still|just)"
_IS = r"(?:'s| is| was| would be| must be| has to be| should be| will be| remains|:| -| —| =)"
_LABEL = r"(?:option|number|no\.|choice|candidate|profile)? ?(?:[12ab][.):]?)? ?(?:[:—-] ?)?"
_HEAD = rf"(?: (?:{_ADVERB}|to|the|that of|that))*:? ?{_LABEL}\"?"
_NOUN = r"(?:answer|choice|choose|option|pick|solution|decision|conclusion|verdict|reply|response)"

_NAMED = re.compile(rf"\b{_NOUN}(?: (?:here|to (?:the|this|your) question|i give))?{_IS}{_HEAD}(?P<at>{_ANY})")
_CHOSEN = re.compile(
    r"\b(?:i|we)(?:'d| would| will|'ll|'m| am)?(?: (?:rather|still|have to|must|therefore))? "
    r"(?:say|choose|chose|pick|select|go with|going with|vote for|answer|opt for|recommend|suggest|prefer|go for|"
    rf"take|settle on|stick with|advise)(?: that)?(?: it is| it's| it must be| you)?{_HEAD}(?P<at>{_ANY})"
)
_DONE = re.compile(
    r"\b(?:you|i|we|he|she|they|one)(?:'d| would|'ll| will| should| must| need to| have to| has to| ought to|"
    rf" had better)(?: (?:better|best|just|simply|rather|therefore|definitely|still|to))* (?P<at>{_ANY})"
)
_WISE = re.compile(
    rf"\b(?:better|best|wiser|wisest|necessary|required|advisable|sensible|smarter|easier|right) to (?P<at>{_ANY})"
)
_CROWNED = re.compile(
    rf"(?P<at>{_ANY})\"?(?: is| was|'s)(?: {_ADVERB})?(?: (?:the|my))?"
    r" (?:final |only |right |correct |best |better |wiser |sensible )*"
    r"(?:answer|choice|option|one|correct|right|solution|person|way|match|best|better|wiser|sensible|necessary|needed|"
    rf"required)\b|(?P<fit>{_ANY}) (?:it is|fits|matches)\b"
)
_COPULA = re.compile(
    rf"{_IS}{_HEAD}(?P<at>{_ANY})\"?(?=$|[ ]?[.!]|,| (?:because|since|as|for|instead|here|who|that|whose)\b)"
)
_LEAD = (
    r"(?:so|then|therefore|thus|hence|clearly|definitely|certainly|probably|obviously|ok|okay|well|hmm+|yes|no|just|"
    r"simply|please|rather|right|sure|final|answer|and|i think|i believe|i mean|i guess|i say|it's|it is|that's|"
    r"that would be|to|the|dr\.?|sir|prof\.?|professor|my|is|—|-|=|•|:|\(|option|number|[12ab][.):]|[12ab]\b)"
)
_TAIL = r"(?:instead|then|there|of course|for sure|i think|i believe|i guess|definitely|please|here|is it|\))"
_ALONE = re.compile(rf"(?:{_LEAD} ?)*\"?(?P<at>{_ANY})\"?(?: ?{_TAIL})*[ .!\"]*")
_ACT = re.compile(
    r"(?:(?:so|then|therefore|thus|hence|please|just|simply|definitely|better|best|well|ok|okay|to|—|-) )*(?P<at>@[cs])"
    r"(?! (?:would|will|is|was|can|could|might|may|seems|does|has|makes|sounds)\b)(?: |$)"
)

_STRENGTH: tuple[tuple[re.Pattern[str], int], ...] = (
    (_NAMED, 3),
    (_CHOSEN, 3),
    (_CROWNED, 3),
    (_DONE, 2),
    (_WISE, 2),
    (_COPULA, 1),
)

_NOT = (
    r"\b(?:not|never|cannot|can't|isn't|wasn't|aren't|won't|wouldn't|shouldn't|don't|doesn't|didn't|couldn't|neither|nor|"
    r"rather than|instead of|anyone but|anything but|other than|except|unlike|excludes?|excluding|eliminates?|"
    r"rules? out|ruled out|ruling out|no need to|against|avoid|without)\b"
)
# No copula in between: "the one who never won is X" gives X.
_DENIED_BEFORE = re.compile(rf"{_NOT}(?:(?! is | was | must be |'s |: )[^@])*(?P<at>{_ANY})")
# "I don't think the answer is X": the claim is denied, copula and all.
_DENIED_CLAIM = re.compile(
    rf"(?:{_NOT}(?: \w+ly| quite| that)? (?:true|the case|correct|right|likely|sure|certain|convinced|think|"
    r"believe|say|see)|"
    r"\bno way\b|(?<!no )(?<!a )(?<!any )(?<!without )\bdoubt\b|\bwrong to (?:say|think|assume)\b)"
    rf"[^@]*(?P<at>{_ANY})"
)
_BE = r"(?: is| was| can| could| would| be|'s)*"
_DENIED_AFTER = re.compile(
    rf"(?P<at>{_ANY})\"?{_BE}(?: therefore| thus| clearly)?"
    r"(?: (?:wrong|incorrect|excluded|eliminated|ruled out|disqualified|out\b)"
    r"|(?: not|n't| cannot|cannot| can't)(?: be)? (?:the|it\b|right|correct|him|her|an option|possible|enough)"
    r"|(?: does not|doesn't| did not| didn't| do not| don't| will not| won't| would not| wouldn't)"
    r" (?:fit|match|work|help|qualify|make sense|do\b))"
)
# Words under which a whole part of a sentence is no answer, and words under which what follows them is none.
_IDLE = re.compile(
    r"\b(?<!even )(?:if|unless|suppose|supposing|assuming|were it|had it|in case|provided|tempting|tempted|at first|"
    r"normally|usually|ordinarily|otherwise|(?:first|initial|obvious|intuitive) (?:thought|guess|instinct|choice|"
    r"answer|reaction)|(?:first|initially|originally) (?:thought|assumed|guessed))\b"
)
_SUPPOSED = re.compile(r"\b(?:whether|could|might|may|maybe|perhaps|possibly|either|not sure|unsure)\b")
_QUOTED = re.compile(
    r"\b(?!i\b|we\b|you\b)[\w']+ (?:[a-z]+ly |always |would |might |may |will |often |once )?"
    r"(?:says|said|thinks|thought|believes|believed|claims|claimed|answers|answered|suggests|suggested|insists|"
    r"insisted|tells|told|guesses|assumes|argues|argued)\b|\baccording to\b|\bpeople\b|\beveryone\b"
)
_JOINED = re.compile(
    rf"{_ANY}\"?,? (?:or|and|and/or|&|/|nor) (?:the |to )?\"?{_ANY}|{_ANY} ?/ ?{_ANY}|\bboth\b[^@]*{_ANY}"
)
_RETRACTED = re.compile(
    r"\b(?:wait|actually|scratch that|on second thoughts?|on reflection|correction|sorry|i mean|i meant|no|hold on|"
    r"let me (?:rethink|reconsider|correct)|strike that|my mistake|oops|rather|i take that back|apologies|"
    r"never ?mind)\b"
)
_IRONIC = re.compile(
    r"\b(?:oh|ah|yeah),? (?:sure|right|yes|of course|great)\b|"
    r"\b(?:great|brilliant|genius|lovely|wonderful) (?:idea|plan)\b|"
    r"\bfamously never\b|\bas if\b|\bgood luck\b|\bwhat could go wrong\b|\byeah,? right\b|/s$"
)
_SENTENCE = re.compile(r"[^\n]+?(?:\.{2,}|…|[.!?]+[\")]*(?=\s|$)|\n|$)")
_TURN = re.compile(r";|\bbut\b|\bhowever\b|\byet\b|\bwhereas\b|\bwhile\b|\bso\b(?= )")
_CLAUSE = re.compile(r",| [—-] |—|: |\((?=[^)]{12})|\)")


def is_ironic(marked: str) -> bool:
    """Whether a reply holds one of the set phrases of irony: then nothing in it is taken at its word."""
    return bool(_IRONIC.search(marked))


def events(marked: str, *, actions: bool) -> Iterator[Event]:
    """What a marked reply does, in its order.

    Args:
        marked: From `forms.mark`.
        actions: Whether the candidates are things to do: then a clause that begins with one tells to do it.
    """
    for sentence in (match[0].strip() for match in _SENTENCE.finditer(marked)):
        if sentence and not sentence.rstrip('")').endswith("?"):
            yield from _sentence_events(sentence, actions=actions)


def _sentence_events(sentence: str, *, actions: bool) -> Iterator[Event]:
    at = 0
    for turn in [*(match.start() for match in _TURN.finditer(sentence)), len(sentence)]:
        part, at = sentence[at:turn].lstrip("; "), turn
        if part:
            yield from _part_events(part, actions=actions)


def _part_events(part: str, *, actions: bool) -> Iterator[Event]:
    """A part is what a "but" or a semicolon leaves: what is supposed or quoted in it stays so to its end."""
    aside = min((m.start() for m in (_SUPPOSED.search(part), _QUOTED.search(part)) if m), default=len(part))
    if _JOINED.search(part) or _IDLE.search(part):
        return
    start = 0
    for stop in [*(match.start() for match in _CLAUSE.finditer(part)), len(part)]:
        clause = part[start:stop].strip(" ,()")
        if _RETRACTED.search(clause):
            yield Event("retract")
        if start <= aside and "@" in clause:
            within = part[:stop] if _is_label(part[:start]) else clause
            shown = within if aside >= stop else part[start:aside]
            yield from _clause_events(shown.strip(" ,()"), actions=actions)
        start = stop + 1


def _is_label(before: str) -> bool:
    """Whether the words before a colon or dash introduce the answer ("final answer: …"): both are read as one."""
    return bool(re.search(rf"\b{_NOUN}\b[^,;]*$", before))


def _clause_events(clause: str, *, actions: bool) -> Iterator[Event]:
    denied = {
        match["at"][1]
        for pattern in (_DENIED_BEFORE, _DENIED_CLAIM, _DENIED_AFTER)
        for match in pattern.finditer(clause)
    }
    yield from (Event("deny", name) for name in sorted(denied))
    given: dict[str, int] = {}
    for pattern, strength in _STRENGTH:
        for match in pattern.finditer(clause):
            name = next(text for text in match.groupdict().values() if text)[1]
            given[name] = max(strength, given.get(name, 0))
    told = actions and len(set(re.findall(_ANY, clause))) == 1  # "do this and then that" chooses neither
    alone = _ALONE.fullmatch(clause) or (told and _ACT.match(clause))
    if alone:
        given[alone["at"][1]] = max(2, given.get(alone["at"][1], 0))
    yield from (Event("give", name, strength) for name, strength in given.items() if name not in denied)
