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
from latentkt.trapqa.items import ProbeRole, Spans, TrapItem, Which
from latentkt.trapqa.pieces import Order, Piece, cue_pieces, option_pieces, piece_spans, question_pieces
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

Template = Literal["chat", "plain"]


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
    options = option_pieces(item, order)
    filled = {**options, "{question}": question_pieces(text, spans, options)}
    pieces = [piece for part in split_template(words) for piece in filled.get(part, [Piece(part, "template")])]
    if prompt_template is None and template == "plain":
        pieces.append(Piece(PLAIN_CUE, "template"))
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
    pieces = [Piece(probe.text, "rest"), *([Piece(PLAIN_CUE, "template")] if template == "plain" else [])]
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


def _finish(
    pieces: Sequence[Piece],
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
        spans=piece_spans(whole),
        chat=template == "chat",
        messages=messages,
        system=stands,
        **facts,
    )


_Whole = tuple[list[Piece], tuple[Message, ...], str | None]


def _plain(pieces: Sequence[Piece], system: str | None) -> _Whole:
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
    return [*pieces[:-1], *cue_pieces(pieces[-1])], (_user(pieces),), None


def _chat(pieces: Sequence[Piece], system: str | None, tokenizer: ChatTokenizer | None) -> _Whole:
    if tokenizer is None:
        raise InputError("a chat prompt needs the tokenizer", fix='pass tokenizer=…, or template="plain"')
    message = _user(pieces)
    frame = chat_frame(tokenizer, message["content"], system=system)
    whole = [
        Piece(frame.before_system, "template"),
        Piece(frame.system or "", "system"),
        Piece(frame.before_user, "template"),
        *pieces,
        Piece(frame.after_user, "template"),
        Piece(frame.cue, "answer"),
    ]
    return [piece for piece in whole if piece.text], (*frame.system_messages, message), frame.system


def _user(pieces: Sequence[Piece]) -> Message:
    return {"role": "user", "content": "".join(piece.text for piece in pieces)}
