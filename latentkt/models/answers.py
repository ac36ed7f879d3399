"""Answers as tokens: whole strings after their prompt, closed by one terminator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.models.tokens import Encoded, tokenize

if TYPE_CHECKING:
    from latentkt.models.handle import ModelHandle

__all__ = ["AnswerSet", "encode_answers", "terminator"]


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The two answers to a prompt, as the ids that follow it.

    Attributes:
        correct: The string y*.
        shortcut: The string y_s.
        correct_ids: Ids of y* after the prompt, the terminator last.
        shortcut_ids: Ids of y_s after the prompt, the terminator last.
        terminator: The one id that closes both: end of turn in chat, newline in plain.
        first_difference: Index of the first token in which they differ.
    """

    correct: str
    shortcut: str
    correct_ids: tuple[int, ...]
    shortcut_ids: tuple[int, ...]
    terminator: int
    first_difference: int


def encode_answers(
    handle: ModelHandle, encoded: Encoded, correct: str, shortcut: str, *, name: str = "prompt"
) -> AnswerSet:
    """Ids of both answers after a prompt.

    They are cut out of the ids of prompt + answer: an answer tokenised alone may get other ids.

    Args:
        handle: The model.
        encoded: The prompt.
        correct: y*, with the space that plain answers begin with.
        shortcut: y_s, the same.
        name: What to call the prompt in errors, such as the id of its item.

    Raises:
        InputError: An answer has no tokens, changes the prompt's own tokens or does not fit the context; both have
            the same ids; or the tokenizer has no terminator.
    """
    end = terminator(handle, chat=encoded.chat)
    found = {}
    for role, text in (("correct", correct), ("shortcut", shortcut)):
        found[role] = (*_answer_ids(handle, encoded, text, f"answer {text!r} ({role}) of {name}"), end)
    if found["correct"] == found["shortcut"]:
        raise InputError(
            f"the two answers of {name} have the same tokens under model {handle.name!r}",
            expected="two answers that the tokenizer tells apart",
            found=f"{correct!r} and {shortcut!r}: {list(found['correct'][:-1])}",
            fix="write one of them differently, or leave the item out for this model",
        )
    pairs = zip(found["correct"], found["shortcut"], strict=False)
    first = next(n for n, (a, b) in enumerate(pairs) if a != b)  # one may be the head of the other: then it ends here
    return AnswerSet(correct, shortcut, found["correct"], found["shortcut"], end, first)


def _answer_ids(handle: ModelHandle, encoded: Encoded, answer: str, what: str) -> tuple[int, ...]:
    ids, _ = tokenize(handle, encoded.text + answer, chat=encoded.chat)
    n = len(encoded.ids)
    if ids[:n] != encoded.ids:
        at = next((k for k, (a, b) in enumerate(zip(ids, encoded.ids, strict=False)) if a != b), len(ids))
        raise InputError(
            f"{what} changes the tokens of its prompt under model {handle.name!r}",
            expected=f"the prompt's ids first: … {list(encoded.ids[max(0, at - 2) :])}",
            found=f"… {list(ids[max(0, at - 2) : at + 3])} from position {max(0, at - 2)}",
            fix="begin plain answers with one space and chat answers with none, or leave the item out for this model",
        )
    if len(ids) == n:
        raise InputError(f"{what} has no tokens", expected="a string with at least one token", found=repr(answer))
    if handle.n_ctx is not None and len(ids) + 1 > handle.n_ctx:
        raise InputError(
            f"{what} does not fit the context of model {handle.name!r}",
            expected=f"at most {handle.n_ctx} tokens with prompt and terminator",
            found=f"{len(ids) + 1} tokens",
            fix="shorten the prompt, or open a model with a longer context",
        )
    return ids[n:]


def terminator(handle: ModelHandle, *, chat: bool) -> int:
    """The id that closes an answer: the template's end of turn in chat, the newline in plain.

    Raises:
        InputError: The template does not close a turn, or the tokenizer has no single token for a newline.
    """
    found = handle.end_of_turn if chat else handle.newline
    if found is None:
        kind = "a token that ends a turn of its chat template" if chat else "one token for a newline"
        raise InputError(
            f"the tokenizer of model {handle.name!r} has no terminator for answers",
            expected=kind,
            found="none",
            fix=f"use the {'plain' if chat else 'chat'} template",
        )
    return found


def find_end_of_turn(handle: ModelHandle) -> int | None:
    """What a chat template writes after an assistant's words; the EOS token where it writes no special token."""
    if not handle.has_chat_template:
        return None
    mark = "QZX"
    messages = [{"role": "user", "content": "A"}, {"role": "assistant", "content": mark}]
    tail = handle.tokenizer.apply_chat_template(messages, tokenize=False).rpartition(mark)[2]
    ids = handle.tokenizer(tail, add_special_tokens=False)["input_ids"] if tail else []
    if ids and ids[0] in handle.special_ids:
        return int(ids[0])
    eos = handle.tokenizer.eos_token_id
    return None if eos is None else int(eos)


def find_newline(handle: ModelHandle) -> int | None:
    """The token that a newline is after a letter."""
    alone = handle.tokenizer("a", add_special_tokens=False)["input_ids"]
    ids = handle.tokenizer("a\n", add_special_tokens=False)["input_ids"]
    unknown = handle.tokenizer.unk_token_id
    good = ids[:-1] == alone and len(ids) == len(alone) + 1 and ids[-1] != unknown
    return int(ids[-1]) if good else None
