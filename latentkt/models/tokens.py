"""The one function that tokenises. Everything after it passes ids on, never strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.models.handle import ModelHandle

__all__ = ["COVERING", "Encoded", "Span", "encode", "tokenize"]

Span = tuple[int, int]

# Roles that fill what is left between the spans of an item: they yield a token that a span needs.
COVERING = ("template", "system", "answer", "rest")


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as the model sees it.

    Attributes:
        ids: Token ids.
        offsets: Of each token, the code points of `text` that it stands for; (n, n) where it stands for none.
        roles: Of each token, its one role.
        spans: By role, the ranges of tokens `(first, stop)` that have it; together they cover every token once.
        is_special: Of each token, whether its id is a special one.
        text: The text that was tokenised (in chat: the rendered conversation).
        chat: Whether it is a rendered conversation.
    """

    ids: tuple[int, ...]
    offsets: tuple[Span, ...]
    roles: tuple[str, ...]
    spans: dict[str, tuple[Span, ...]]
    is_special: tuple[bool, ...]
    text: str
    chat: bool

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, role: str) -> tuple[int, ...]:
        """The token positions that have a role; none where the role does not occur."""
        return tuple(p for first, stop in self.spans.get(role, ()) for p in range(first, stop))


def encode(
    handle: ModelHandle,
    text: str,
    *,
    chat: bool,
    spans: Mapping[str, Sequence[Span]] | None = None,
    name: str = "prompt",
) -> Encoded:
    """Tokenise a prompt and carry its spans from code points to tokens.

    In chat the text already holds its special tokens, so none are added; a plain text gets what the tokenizer adds by
    default. A token belongs to a span when the two overlap. Spans of different roles must not overlap, except that the
    covering roles (`template`, `system`, `answer`, `rest`) yield; where a token reaches into two spans the one with
    more of its characters has it. What no span claims is `rest`; a special token that stands for no
    characters (a BOS that the tokenizer adds) is `template`.

    Args:
        handle: The model.
        text: The prompt.
        chat: Whether `text` is a rendered conversation.
        spans: By role, code-point ranges of `text`.
        name: What to call the prompt in errors, such as the id of its item.

    Raises:
        InputError: The text is empty or longer than the context, a span is outside the text or covers no token, two
            spans overlap, or the BOS token stands at positions 0 and 1.
    """
    ids, offsets = tokenize(handle, text, chat=chat)
    if not ids:
        raise InputError(f"{name} has no tokens", expected="a text", found=repr(text[:40]))
    limit = handle.n_ctx
    if limit is not None and len(ids) > limit:
        raise InputError(
            f"{name} is longer than the context of model {handle.name!r}",
            expected=f"at most {limit} tokens",
            found=f"{len(ids)} tokens",
            fix="shorten the prompt, or open a model with a longer context",
        )
    _refuse_double_bos(handle, ids, name)
    wanted = {role: [(int(start), int(end)) for start, end in ranges] for role, ranges in (spans or {}).items()}
    _check_spans(wanted, text, name)
    special = tuple(number in handle.special_ids for number in ids)
    roles = _roles(offsets, special, wanted)
    by_role = _ranges(roles)
    for role, ranges in wanted.items():
        if ranges and role not in by_role and role not in COVERING:
            raise InputError(
                f"span {role!r} of {name} covers no token of its own", expected="at least one token", found=ranges
            )
    return Encoded(ids, offsets, roles, by_role, special, text, chat)


def tokenize(handle: ModelHandle, text: str, *, chat: bool) -> tuple[tuple[int, ...], tuple[Span, ...]]:
    """Ids and offsets of a text: `add_special_tokens=False` in chat, the tokenizer's default otherwise."""
    options = {"add_special_tokens": False} if chat else {}
    if chat and not handle.has_chat_template:
        raise InputError(
            f"the tokenizer of model {handle.name!r} has no chat template", expected="chat=False", found="chat=True"
        )
    found = handle.tokenizer(
        text, return_offsets_mapping=True, return_attention_mask=False, truncation=False, padding=False, **options
    )
    return tuple(found["input_ids"]), tuple((int(a), int(b)) for a, b in found["offset_mapping"])


def _refuse_double_bos(handle: ModelHandle, ids: tuple[int, ...], name: str) -> None:
    bos = handle.tokenizer.bos_token_id
    if bos is not None and ids[:2] == (bos, bos):
        raise InputError(
            f"{name} begins with the BOS token of model {handle.name!r} twice",
            expected=f"{handle.tokenizer.bos_token!r} once",
            found=list(ids[:4]),
            fix="take the BOS token out of the text; encode a rendered conversation with chat=True",
        )


def _check_spans(spans: dict[str, list[Span]], text: str, name: str) -> None:
    marked: list[tuple[int, int, str]] = []
    for role, ranges in spans.items():
        for start, end in ranges:
            if not 0 <= start < end <= len(text):
                raise InputError(
                    f"span {role!r} of {name} lies outside its text",
                    expected=f"0 <= start < end <= {len(text)} (code points)",
                    found=[start, end],
                )
            if role not in COVERING:
                marked.append((start, end, role))
    marked.sort()
    for (_, end, role), (start, _, other) in pairwise(marked):
        if start < end:
            raise InputError(
                f"spans {role!r} and {other!r} of {name} overlap", expected="disjoint spans", found=text[start:end]
            )


def _roles(offsets: tuple[Span, ...], special: tuple[bool, ...], spans: dict[str, list[Span]]) -> tuple[str, ...]:
    def role_of(token: Span, is_special: bool) -> str:
        first, stop = token
        if first == stop:
            if is_special:
                return "template"
            stop = first + 1  # some tokenizers trim a token of spaces to nothing
        overlaps = {
            role: sum(max(0, min(stop, end) - max(first, start)) for start, end in ranges)
            for role, ranges in spans.items()
        }
        for group in (True, False):
            found = {role: n for role, n in overlaps.items() if n and (role not in COVERING) is group}
            if found:
                return max(found, key=lambda role: found[role])
        return "rest"

    return tuple(role_of(token, is_special) for token, is_special in zip(offsets, special, strict=True))


def _ranges(roles: tuple[str, ...]) -> dict[str, tuple[Span, ...]]:
    found: dict[str, list[Span]] = {}
    for position, role in enumerate(roles):
        ranges = found.setdefault(role, [])
        if ranges and ranges[-1][1] == position:
            ranges[-1] = (ranges[-1][0], position + 1)
        else:
            ranges.append((position, position + 1))
    return {role: tuple(ranges) for role, ranges in found.items()}
