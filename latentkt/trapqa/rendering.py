"""Items become prompts here and nowhere else; the spans move with the text, and every character has one role.

Roles of a prompt: those of the item (`shortcut`, `constraint`, …); `option_correct` and `option_shortcut`, wherever
the prompt shows the item's two answers; `rest`, what remains of the question; `system`, the system prompt; `answer`,
the cue after which the answer is written; `template`, all other words and markup. Together they cover the prompt
without overlap, so that the effects of roles can be held against the effect of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from latentkt.errors import InputError
from latentkt.trapqa.chat import ChatTokenizer, Message, chat_frame
from latentkt.trapqa.items import SLOTS, Candidate, ProbeRole, Span, Spans, TrapItem, Which
from latentkt.trapqa.templates import (
    CONDITIONS,
    NEUTRAL_QUESTION,
    PLAIN_CUE,
    PROBE_TEMPLATE,
    TEMPLATES,
    Condition,
    check_prompt_template,
    split_template,
)

__all__ = ["Order", "Rendered", "own_condition", "render", "render_probe"]

Order = Literal["correct_first", "shortcut_first"]
Template = Literal["chat", "plain"]
_UNMARKED = ("template", "rest")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, and what stands where in it.

    Attributes:
        text: The prompt.
        spans: Role -> code-point ranges of `text`, in order; every character has exactly one role.
        chat: Whether a chat template wrote it.
        messages: The messages that the chat template was given; one user message where it was not.
        correct: The item's correct answer as the prompt shows it ("Yes" or "No" for a probe question).
        shortcut: The item's other answer, likewise. In a flip control this is the right one.
        right: Which of the two is right under this prompt; None where neither is.
        item_id: The item.
        which: `item` or `control`.
        condition: The condition, or `probe_eliminative`, `probe_compatibility`.
        order: Which of the item's answers is shown first; None for a probe question, which shows none.
        system: The system prompt that stands in the prompt (a template's own is recorded too), or None.
        prompt_template: The template that was filled.
    """

    text: str
    spans: Spans
    chat: bool
    messages: tuple[Message, ...]
    correct: str
    shortcut: str
    right: Literal["correct", "shortcut"] | None
    item_id: str
    which: Which
    condition: str
    order: Order | None
    system: str | None
    prompt_template: str

    @property
    def answer_prefix(self) -> str:
        """What stands between the prompt and an answer: one space in plain prompts, nothing in chat."""
        return "" if self.chat else " "


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of a prompt that has one role; a whole span of the item, if it is one."""

    text: str
    role: str


def own_condition(item: TrapItem) -> Condition:
    """The condition that an item is asked in unless another is named: `names`, or `real_life` for actions."""
    return CONDITIONS[item.kind][0]


def render(
    item: TrapItem,
    *,
    which: Which = "item",
    condition: Condition | None = None,
    order: Order = "correct_first",
    template: Template = "chat",
    system: str | None = None,
    tokenizer: ChatTokenizer | None = None,
    prompt_template: str | None = None,
) -> Rendered:
    r"""Make the prompt of an item or of its control.

    Args:
        item: The item.
        which: The item itself, or its control.
        condition: `names`, `profiles` (scientists), `real_life` (actions) or `neutral` (both: the two options and no
            description; the same for item and control). None: `names` for scientists, `real_life` for actions.
        order: Which of the ITEM's two answers is shown first, in its control too: `{option_a}` is that one.
        template: `chat` (needs the tokenizer) or `plain` (ends with "\nAnswer:").
        system: None keeps the chat template's own system prompt, "none" removes it, other text replaces it.
        tokenizer: Used for its chat template only.
        prompt_template: A text of the user's with placeholders (see `latentkt.trapqa.templates`) in place of the
            built-in one; a plain prompt is then exactly that text, filled, with nothing added at its end.

    Raises:
        InputError: An argument does not fit the item, the tokenizer or the others.

    Example:
        >>> from latentkt.trapqa import mark_item
        >>> item = mark_item(
        ...     id="shelf", kind="action", family="tool_required",
        ...     text="I have [[shortcut: a hammer]] at hand and [[constraint: screws]]. "
        ...          "Do I take {option_a} or {option_b}?",
        ...     control={"constraint": "nails"},
        ...     correct="the screwdriver", shortcut="the mallet")
        >>> print(render(item, template="plain").text)
        Two options are named in the question below. Answer it with exactly one of them, in the same words.
        <BLANKLINE>
        Question:
        I have a hammer at hand and screws. Do I take the screwdriver or the mallet?
        Answer:
    """
    condition = own_condition(item) if condition is None else condition
    _check_choices(which=(which, get_args(Which)), order=(order, get_args(Order)))
    _check_condition(item, condition)
    words = TEMPLATES[item.kind, condition] if prompt_template is None else prompt_template
    check_prompt_template(words, kind=item.kind, condition=condition)
    text, spans = (NEUTRAL_QUESTION[item.kind], {}) if condition == "neutral" else item.question(which)
    options = _options(item, order)
    filled = {**options, "{question}": _question(text, spans, options)}
    pieces = [piece for part in split_template(words) for piece in filled.get(part, [_Piece(part, "template")])]
    if prompt_template is None and template == "plain":
        pieces.append(_Piece(PLAIN_CUE, "template"))
    return _finish(
        pieces,
        template=template,
        system=system,
        tokenizer=tokenizer,
        facts={
            "correct": item.correct.text,
            "shortcut": item.shortcut.text,
            "right": None if condition == "neutral" else item.right(which),
            "item_id": item.id,
            "which": which,
            "condition": condition,
            "order": order,
            "prompt_template": words,
        },
    )


def render_probe(
    item: TrapItem,
    role: ProbeRole,
    *,
    template: Template = "chat",
    system: str | None = None,
    tokenizer: ChatTokenizer | None = None,
) -> Rendered:
    """Make the prompt of a probe question: the question alone, in a conversation of its own.

    Args:
        item: The item.
        role: `eliminative` or `compatibility`.
        template: As in `render`.
        system: As in `render`.
        tokenizer: As in `render`.

    Returns:
        The prompt; its answers are "Yes" and "No", and `correct` is the true one.

    Raises:
        InputError: The item has no such probe question, or an argument does not fit.
    """
    _check_choices(role=(role, get_args(ProbeRole)))
    probe = item.probe(role)
    if probe is None:
        roles = ", ".join(each.role for each in item.probe_questions) or "none"
        raise InputError(f"item {item.id!r} has no {role} probe question", expected=f"one of its own: {roles}")
    pieces = [_Piece(probe.text, "rest"), *([_Piece(PLAIN_CUE, "template")] if template == "plain" else [])]
    correct, shortcut = ("Yes", "No") if probe.answer else ("No", "Yes")
    return _finish(
        pieces,
        template=template,
        system=system,
        tokenizer=tokenizer,
        facts={
            "correct": correct,
            "shortcut": shortcut,
            "right": "correct",
            "item_id": item.id,
            "which": "item",
            "condition": f"probe_{role}",
            "order": None,
            "prompt_template": PROBE_TEMPLATE,
        },
    )


def _check_choices(**choices: tuple[object, tuple[object, ...]]) -> None:
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise InputError(f"{name} is wrong", expected=f"one of {', '.join(map(str, allowed))}", found=repr(value))


def _check_condition(item: TrapItem, condition: Condition) -> None:
    if condition not in CONDITIONS[item.kind]:
        raise InputError(
            f"item {item.id!r} cannot be asked in the condition {condition!r}",
            expected=f"one of {', '.join(CONDITIONS[item.kind])} for items of kind {item.kind!r}",
        )
    lacking = [c.text for c in (item.correct, item.shortcut) if c.profile is None]
    if condition == "profiles" and lacking:
        raise InputError(
            f"item {item.id!r} cannot be asked in the condition 'profiles'",
            expected="a profile of both candidates",
            found=f"none of {' and '.join(lacking)}",
        )


def _options(item: TrapItem, order: Order) -> dict[str, list[_Piece]]:
    shown = [(item.correct, "option_correct"), (item.shortcut, "option_shortcut")]
    if order == "shortcut_first":
        shown.reverse()
    filled = {}
    for letter, (candidate, role) in zip("ab", shown, strict=True):
        filled[f"{{option_{letter}}}"] = [_Piece(candidate.text, role)]
        filled[f"{{profile_{letter}}}"] = [_Piece(_profile(candidate), role)]
    return filled


def _profile(candidate: Candidate) -> str:
    return f"{candidate.text}\n{candidate.profile}"


def _question(text: str, spans: Spans, options: Mapping[str, list[_Piece]]) -> list[_Piece]:
    """The question cut at its spans and slots."""
    marks = [(start, end, _Piece(text[start:end], role)) for role, ranges in spans.items() for start, end in ranges]
    for slot in SLOTS:
        if slot in text:
            at = text.index(slot)
            marks.append((at, at + len(slot), options[slot][0]))
    pieces, at = [], 0
    for start, end, piece in sorted(marks, key=lambda mark: mark[0]):
        pieces += [_Piece(text[at:start], "rest"), piece]
        at = end
    return [piece for piece in (*pieces, _Piece(text[at:], "rest")) if piece.text]


def _finish(
    pieces: Sequence[_Piece],
    *,
    template: Template,
    system: str | None,
    tokenizer: ChatTokenizer | None,
    facts: Mapping[str, Any],
) -> Rendered:
    _check_choices(template=(template, get_args(Template)))
    if template == "plain":
        whole, messages, stands = _plain(pieces, system)
    else:
        whole, messages, stands = _chat(pieces, system, tokenizer)
    return Rendered(
        text="".join(piece.text for piece in whole),
        spans=_spans(whole),
        chat=template == "chat",
        messages=messages,
        system=stands,
        **facts,
    )


_Whole = tuple[list[_Piece], tuple[Message, ...], str | None]


def _plain(pieces: Sequence[_Piece], system: str | None) -> _Whole:
    if system not in (None, "none", ""):
        raise InputError(
            "a plain prompt has no system prompt",
            found=f"system={system!r}",
            fix="put the words into a prompt template",
        )
    if pieces[-1].text[-1].isspace():
        raise InputError(
            "a plain prompt ends with white space",
            expected="an end to which an answer is joined by one space",
            found=repr(pieces[-1].text[-20:]),
        )
    return [*pieces[:-1], *_cued(pieces[-1])], (_user(pieces),), None


def _cued(last: _Piece) -> list[_Piece]:
    """The last line of a plain prompt is its answer cue, if it holds words of the template only."""
    if last.role != "template":
        return [last]
    at = max(last.text.rfind("\n"), 0)
    return [piece for piece in (_Piece(last.text[:at], "template"), _Piece(last.text[at:], "answer")) if piece.text]


def _chat(pieces: Sequence[_Piece], system: str | None, tokenizer: ChatTokenizer | None) -> _Whole:
    if tokenizer is None:
        raise InputError("a chat prompt needs the tokenizer", fix='pass tokenizer=…, or template="plain"')
    message = _user(pieces)
    frame = chat_frame(tokenizer, message["content"], system=system)
    whole = [
        _Piece(frame.before_system, "template"),
        _Piece(frame.system or "", "system"),
        _Piece(frame.before_user, "template"),
        *pieces,
        _Piece(frame.after_user, "template"),
        _Piece(frame.cue, "answer"),
    ]
    return [piece for piece in whole if piece.text], (*frame.system_messages, message), frame.system


def _user(pieces: Sequence[_Piece]) -> Message:
    return {"role": "user", "content": "".join(piece.text for piece in pieces)}


def _spans(pieces: Sequence[_Piece]) -> dict[str, tuple[Span, ...]]:
    """Ranges of the pieces by role; neighbours that are both template, or both rest, make one range."""
    spans: dict[str, list[Span]] = {}
    at = 0
    for piece in pieces:
        end = at + len(piece.text)
        ranges = spans.setdefault(piece.role, [])
        if ranges and ranges[-1][1] == at and piece.role in _UNMARKED:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((at, end))
        at = end
    return {role: tuple(ranges) for role, ranges in spans.items()}
