"""Greedy or sampled generation while sites are edited, step by step, with a key/value cache.

A step reads tokens and gives the next one: step 0 reads the prompt and gives new token 0, step t reads new token t − 1
and gives token t. What an edited step leaves in the cache stays there, as it would had the model computed it itself: so
an edit of the prompt alone acts on everything that is written after it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from latentkt.errors import InputError
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Edit, Engine, SiteKey
from latentkt.models.devices import naming_out_of_memory
from latentkt.models.sites import attached

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import Encoded, ModelHandle

__all__ = ["Generation", "Steps", "generate"]

Steps = Literal["prefix", "one", "all"]
Edits = Mapping[SiteKey, Edit]


@dataclass(frozen=True, slots=True)
class Generation:
    """What was written after one prompt.

    Attributes:
        ids: The new tokens, with the one that ended them.
        text: The same as text, without special tokens.
        logp: Log-probability (nats) of each new token in the run that wrote it, edits included; before temperature.
        finished: Whether a stop token was written; False where `max_new_tokens` cut it off.
        n_edited: Steps in which the edits ran; 0 where the text ended before the step that was to be edited.
    """

    ids: tuple[int, ...]
    text: str
    logp: tuple[float, ...]
    finished: bool
    n_edited: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one call writes."""

    steps: Steps
    at: int | None
    max_new_tokens: int
    stop: frozenset[int] | None
    temperature: float
    seed: int

    def check(self) -> None:
        """Refuse what no model could do."""
        if self.steps not in get_args(Steps):
            raise InputError("steps", expected="prefix, one or all", found=self.steps)
        if self.max_new_tokens < 1:
            raise InputError("max_new_tokens", expected="at least 1", found=self.max_new_tokens)
        if (self.at is not None) != (self.steps == "one"):
            raise InputError("at", expected="a step with steps='one', and with nothing else", found=self.at)
        if self.at is not None and not 0 <= self.at < self.max_new_tokens:
            raise InputError("at", expected=f"0 to {self.max_new_tokens - 1}: one of the steps", found=self.at)
        if not self.temperature >= 0:
            raise InputError("temperature", expected="0 or more", found=self.temperature)

    def edits_step(self, step: int) -> bool:
        """Whether anything is edited in a step."""
        return {"prefix": step == 0, "one": step == self.at, "all": True}[self.steps]


@naming_out_of_memory("generation", fix="lower batch_size or max_new_tokens")
def generate(
    model: ModelHandle | Engine,
    prompts: Sequence[Encoded],
    *,
    edits: Edits | Sequence[Edits] | None = None,
    steps: Steps = "all",
    at: int | None = None,
    max_new_tokens: int = 32,
    stop: Sequence[int] | None = None,
    temperature: float = 0.0,
    seed: int = 0,
    batch_size: int = 8,
) -> list[Generation]:
    """Let the model write while sites are edited.

    An edit is called once a prompt and step with the site's value for that prompt alone, padding left out, so numbers
    do not depend on what else is in the batch. Whatever engine is given, the Hugging Face modules write: a
    TransformerBridge does not use its cache rightly.

    Args:
        model: An opened model, or an engine on one.
        prompts: Prompts as `encode` gives them.
        edits: By (site, layer), a function of the value that gives the new value, as in `Engine.run`; for all prompts,
            or one such mapping a prompt.
        steps: What is edited. `prefix`: the prompt's tokens, value `[1, prompt, …]`, and none that is written. `one`:
            the single token from which new token number `at` is predicted (0: the last of the prompt), value
            `[1, 1, …]`. `all`: the prompt's tokens, then each new token as it is read.
        at: The step of `one`.
        max_new_tokens: Longest text.
        stop: Ids that end a text; default the end of text and, in chat, the end of turn.
        temperature: 0 takes the likeliest token each time, anything above samples.
        seed: Of sampling. Draws depend on the seed and the prompt's ids, not on the batch.
        batch_size: Prompts that are run at once, padded on the left.

    Returns:
        One `Generation` a prompt, in their order.

    Raises:
        InputError: An option is wrong, a text could outgrow the context, a site is unknown, read only (`pattern`) or
            absent, or an edit changes the shape of a value.
        RunError: An edit never ran.

    Example:
        >>> from latentkt.internals import generate
        >>> from latentkt.models import encode, open_model
        >>> handle = open_model("smollm2", check=False)
        >>> prompt = encode(handle, "The capital of France is", chat=False)
        >>> generate(handle, [prompt], max_new_tokens=2)[0].text
        ' Paris.'
        >>> less = generate(handle, [prompt], edits={("mlp_out", 0): lambda value: 0 * value}, max_new_tokens=2)[0]
        >>> less.n_edited, less.text == " Paris."
        (2, False)
    """
    handle = engine_of(model).handle
    by_prompt = _edits_by_prompt(edits, len(prompts))
    plan = _Plan(steps, at, max_new_tokens, None if stop is None else frozenset(stop), temperature, seed)
    _refuse(handle, prompts, by_prompt, plan, batch_size)
    order = sorted(range(len(prompts)), key=lambda n: -len(prompts[n].ids))  # like lengths together: little padding
    found: dict[int, Generation] = {}
    for first in range(0, len(order), batch_size):
        chosen = order[first : first + batch_size]
        rows = [_Row(prompts[n], by_prompt[n], *_stops_and_draws(handle, prompts[n], plan)) for n in chosen]
        with torch.no_grad():
            _Batch(handle, rows, plan).write()
        found |= {n: row.generation(handle) for n, row in zip(chosen, rows, strict=True)}
    return [found[n] for n in range(len(prompts))]


def _edits_by_prompt(edits: Edits | Sequence[Edits] | None, n_prompts: int) -> Sequence[Edits]:
    if edits is None or isinstance(edits, Mapping):
        return [edits or {}] * n_prompts
    if len(edits) != n_prompts:
        raise InputError("edits", expected=f"one mapping, or one a prompt ({n_prompts})", found=len(edits))
    return edits


def _refuse(
    handle: ModelHandle, prompts: Sequence[Encoded], edits: Sequence[Edits], plan: _Plan, batch_size: int
) -> None:
    """What can be known before any work starts."""
    plan.check()
    if batch_size < 1:
        raise InputError("batch_size", expected="at least 1", found=batch_size)
    if handle.arch.cache_keyword is None:
        raise InputError(f"model {handle.name!r} takes no key/value cache", expected="a model that generates with one")
    longest = max((len(prompt.ids) for prompt in prompts), default=0) + plan.max_new_tokens
    if handle.n_ctx is not None and longest > handle.n_ctx:
        raise InputError(
            f"a text may outgrow the context of model {handle.name!r}",
            expected=f"at most {handle.n_ctx} tokens, prompt and new ones",
            found=longest,
            fix="lower max_new_tokens",
        )
    for site, layer in {key: None for one in edits for key in one}:
        if not handle.arch.site(site, layer).writable:
            raise InputError(f"site {site!r} cannot be replaced", expected="another site", fix="edit z instead")


def _stops_and_draws(handle: ModelHandle, prompt: Encoded, plan: _Plan) -> tuple[frozenset[int], Any]:
    """What ends a prompt's text, and where its draws come from."""
    ends = {handle.tokenizer.eos_token_id, handle.end_of_turn if prompt.chat else None}
    stop = frozenset(end for end in ends if end is not None) if plan.stop is None else plan.stop
    digest = hashlib.sha256(f"{plan.seed} {list(prompt.ids)}".encode()).digest()
    return stop, torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


@dataclass(eq=False)
class _Row:
    """One prompt and what has been written after it."""

    prompt: Encoded
    edits: Edits
    stop: frozenset[int]
    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    n_edited: int = 0

    @property
    def finished(self) -> bool:
        return bool(self.ids) and self.ids[-1] in self.stop

    def take(self, logits: Float[Tensor, "vocab"], temperature: float) -> None:
        """Choose the next token."""
        if temperature:
            weights = (logits.double() / temperature).softmax(-1)
            token = int(torch.multinomial(weights, 1, generator=self.generator))
        else:
            token = int(logits.argmax())
        self.ids.append(token)
        self.logp.append(float(logits.log_softmax(-1)[token]))

    def generation(self, handle: ModelHandle) -> Generation:
        text = handle.tokenizer.decode(self.ids, skip_special_tokens=True)
        return Generation(tuple(self.ids), text, tuple(self.logp), self.finished, self.n_edited)


class _Batch:
    """Rows that are run together, padded on the left; a row that has ended is run on, unread and unedited."""

    def __init__(self, handle: ModelHandle, rows: Sequence[_Row], plan: _Plan) -> None:
        from transformers import DynamicCache

        self._handle, self._rows, self._plan = handle, rows, plan
        self._width = max(len(row.prompt.ids) for row in rows)
        self._cache = DynamicCache()  # without the config: a sliding window is the mask's work, as in a plain run
        takes_fewer = "logits_to_keep" in inspect.signature(handle.model.forward).parameters
        self._options = {"use_cache": True, **({"logits_to_keep": 1} if takes_fewer else {})}

    def write(self) -> None:
        """Write until every row has ended, or to the longest text."""
        ids = torch.tensor([[0] * self._pad(row) + list(row.prompt.ids) for row in self._rows])
        mask = torch.tensor([[0] * self._pad(row) + [1] * len(row.prompt.ids) for row in self._rows])
        for step in range(self._plan.max_new_tokens):
            live = [row for row in self._rows if not row.finished]
            if not live:
                return
            with self._edited(step):
                logits = self._forward(ids, mask)
            for n, row in enumerate(self._rows):
                if row in live:
                    row.take(logits[n], self._plan.temperature)
                    row.n_edited += bool(row.edits) and self._plan.edits_step(step)
            ids = torch.tensor([[row.ids[-1]] for row in self._rows])
            mask = torch.cat([mask, torch.ones(len(mask), 1, dtype=mask.dtype)], 1)

    def _pad(self, row: _Row) -> int:
        return self._width - len(row.prompt.ids)

    def _forward(self, ids: Tensor, mask: Tensor) -> Float[Tensor, "row vocab"]:
        keyword = self._handle.arch.cache_keyword
        inputs = {**self._handle.inputs(ids, mask), **self._options, str(keyword): self._cache}
        logits: Tensor = self._handle.model(**inputs).logits[:, -1]
        return logits.float().cpu()

    def _edited(self, step: int) -> AbstractContextManager[None]:
        if not self._plan.edits_step(step):
            return nullcontext()
        keys = {key: None for row in self._rows if not row.finished for key in row.edits}
        return attached((self._handle.arch.site(*key), self._change(key, step)) for key in keys)

    def _change(self, key: SiteKey, step: int) -> Callable[[Tensor], Tensor]:
        edited = list(self._edited_rows(key, step))

        def change(value: Tensor) -> Tensor:
            out = value.clone()
            for n, first, edit in edited:
                own = value[n : n + 1, first:]
                new = edit(own)
                if new.shape != own.shape:
                    raise InputError(
                        f"an edit of {key[0]}.{key[1]} changes the shape", expected=[*own.shape], found=[*new.shape]
                    )
                out[n : n + 1, first:] = new
            return out

        return change

    def _edited_rows(self, key: SiteKey, step: int) -> Iterator[tuple[int, int, Edit]]:
        """(row, first column of what it reads and is edited, edit)."""
        for n, row in enumerate(self._rows):
            if key in row.edits and not row.finished:
                only_last = step == 0 and self._plan.steps == "one"
                first = (self._width - 1 if only_last else self._pad(row)) if step == 0 else 0
                yield n, first, row.edits[key]
