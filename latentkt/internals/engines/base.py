"""What every engine is: one method that runs the model, reads sites and changes them, and what follows from it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch

from latentkt.errors import InputError
from latentkt.internals.metrics import AnswerScore, Scorer

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["STREAM", "Cell", "Edit", "Engine", "EngineRun", "FromRun", "Patch", "Replace", "SiteKey"]

SiteKey = tuple[str, int]
STREAM = frozenset({"resid_pre", "resid_post"})
"""The sites of the residual stream between layers."""
Edit = Callable[["Tensor"], "Tensor"]
GradOf = Callable[["Tensor"], "Tensor"]


@dataclass(frozen=True, eq=False)
class EngineRun:
    """What a run gives.

    Attributes:
        logits: [batch, pos, vocab], float32.
        activations: By (site, layer), the values that flowed on, after edits. Shapes: see `latentkt.models.sites`.
        grads: By (site, layer), the gradient of `grad_of(logits)`; empty where none was asked for.
    """

    logits: Float[Tensor, "batch pos vocab"]
    activations: dict[SiteKey, Tensor]
    grads: dict[SiteKey, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Replace:
    """An edit that puts values at some positions, in every row.

    Attributes:
        positions: Token positions, negative ones from the end; for `pattern`, query positions.
        values: [position, …]: what stands there afterwards, of one head where `head` is given.
        head: The head that is changed; None for all.
    """

    positions: tuple[int, ...]
    values: Tensor
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        """`value` with the replacement; `value` itself is left alone.

        Raises:
            InputError: A position lies outside the value.
        """
        out = value.clone()
        at, length = list(self.positions), value.shape[1]
        if not all(-length <= position < length for position in at):
            raise InputError("an edit's positions lie outside the run", expected=f"{length} tokens", found=at)
        new = self.values.to(out)
        if self.head is None:
            out[:, at] = new
        else:
            out[:, at, self.head] = new
        return out


@dataclass(frozen=True)
class FromRun:
    """Values by their name: those that a patch's site has in a prompt's plain run.

    Attributes:
        prompt: Token ids.
        positions: Its tokens, one for each position of the patch.
    """

    prompt: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Patch:
    """One change of one site at some prompt positions.

    Attributes:
        site: A site (see `latentkt.models.SITES`).
        layer: Its layer.
        positions: Prompt positions, ascending.
        values: [position, d_model], [position, heads, d_head], or [position, d_head] where `head` is given; or which
            run they come from, for all heads.
        head: The head that is changed (of n_kv heads for k and v); None for all.
    """

    site: str
    layer: int
    positions: tuple[int, ...]
    values: Tensor | FromRun
    head: int | None = None

    @property
    def edit(self) -> Replace:
        """The same as an edit."""
        return Replace(self.positions, self.given, self.head)

    @property
    def given(self) -> Tensor:
        """The values themselves; named ones have to be looked up first (`Engine.settled`)."""
        if isinstance(self.values, FromRun):
            raise InputError(
                "a patch's values are only named", expected="values", fix="pass its cell to Engine.settled"
            )
        return self.values


Cell = tuple[Patch, ...]
"""What is changed in one patched run: usually one patch, several for a window of layers."""


class Engine(ABC):
    """A way to run a model; subclasses define `run` and may know shortcuts for the rest.

    Attributes:
        handle: The model.
    """

    name: ClassVar[str]

    def __init__(self, handle: ModelHandle) -> None:
        self.handle = handle

    @abstractmethod
    def run(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None = None,
        *,
        capture: Iterable[SiteKey] = (),
        edits: Mapping[SiteKey, Edit] | None = None,
        grad_of: GradOf | None = None,
    ) -> EngineRun:
        """Run the model once.

        Args:
            ids: Token ids.
            mask: 1 where a token is real, 0 where it is padding (either side); all real where it is None.
            capture: (site, layer) pairs whose values are returned, after edits.
            edits: By (site, layer), a function of the value that gives the new value.
            grad_of: A function of the logits that gives one number; its gradient at the captured sites is returned.

        Raises:
            InputError: A site is unknown, or this model lacks it.
            RunError: An edit never ran.
        """

    def values(self, prompt: Sequence[int], wanted: Iterable[SiteKey]) -> dict[SiteKey, Tensor]:
        """Values of sites on a plain prompt, [position, …]; a pattern lies as [query, head, key]."""
        keys = list(dict.fromkeys(wanted))
        found = self.run(torch.tensor([list(prompt)]), capture=keys).activations
        return {key: found[key][0].transpose(0, 1) if key[0] == "pattern" else found[key][0] for key in keys}

    def readers(self, scorer: Scorer) -> Float[Tensor, "entry reader d_model"]:
        """The residual stream where the answers are read: entry 0 enters layer 0, entry l + 1 leaves layer l."""
        branches = scorer.branches
        keys = [("resid_pre", 0), *(("resid_post", layer) for layer in range(self.handle.n_layers))]
        stream = {}
        for sequence in dict.fromkeys(branches.sequences):
            found = self.values(sequence, keys)
            stream[sequence] = torch.stack([found[key] for key in keys])
        first, second = (stream[sequence] for sequence in branches.sequences)
        return torch.cat([first[:, branches.n_prompt - 1 :], second[:, branches.n_prompt :]], 1)

    def score(self, scorer: Scorer) -> AnswerScore:
        """Score both answers in the plain run."""
        return self.sweep(scorer, [()])[0]

    def scores(self, scorers: Sequence[Scorer]) -> list[AnswerScore]:
        """Score the answers of several plain runs."""
        return [self.score(scorer) for scorer in scorers]

    def sweep(self, scorer: Scorer, cells: Sequence[Cell]) -> list[AnswerScore]:
        """Score both answers in one patched run a cell; here one plain forward a cell and answer."""
        return [self._score_cell(scorer, cell) for cell in self.settled(cells)]

    def require_named(self, cells: Sequence[Cell]) -> None:
        """Refuse named values that do not exist."""
        patches = [patch for cell in cells for patch in cell if isinstance(patch.values, FromRun)]
        self.require((patch.site, patch.layer) for patch in patches)
        for patch in patches:
            named, at = patch.values, patch.positions
            assert isinstance(named, FromRun)
            if patch.head is not None:
                raise InputError("named values are of all heads", expected="head=None", found=patch.head)
            inside = all(0 <= position < len(named.prompt) for position in named.positions)
            if not inside or len(named.positions) != len(at):
                raise InputError(
                    "named values lie outside the prompt that they are named by, or are not one a position",
                    expected=f"{len(at)} of the positions 0 to {len(named.prompt) - 1}",
                    found=named.positions,
                )

    def settled(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells with their values, where these are only named."""
        wanted: dict[tuple[int, ...], dict[SiteKey, None]] = {}
        self.require_named(cells)
        for patch in itertools.chain.from_iterable(cells):
            if isinstance(patch.values, FromRun):
                wanted.setdefault(patch.values.prompt, {})[patch.site, patch.layer] = None
        found = {prompt: self.values(prompt, keys) for prompt, keys in wanted.items()}

        def settle(patch: Patch) -> Patch:
            named = patch.values
            if not isinstance(named, FromRun):
                return patch
            return replace(patch, values=found[named.prompt][patch.site, patch.layer][list(named.positions)])

        return [tuple(map(settle, cell)) for cell in cells]

    def _score_cell(self, scorer: Scorer, cell: Cell) -> AnswerScore:
        branches = scorer.branches
        edits = edits_of(cell)
        logits = {}
        for sequence in dict.fromkeys(branches.sequences):
            logits[sequence] = self.run(torch.tensor([sequence]), edits=edits).logits[0].cpu()
        first, second = (logits[sequence] for sequence in branches.sequences)
        readers = torch.cat([first[branches.n_prompt - 1 :], second[branches.n_prompt :]])
        return scorer.from_logits(readers[None])[0]

    def require(self, keys: Iterable[SiteKey]) -> list[SiteKey]:
        """The (site, layer) pairs, each once, after a check that the model has them."""
        wanted = list(dict.fromkeys(keys))
        for name, layer in wanted:
            self.handle.arch.site(name, layer)
        return wanted


def edits_of(cell: Cell) -> dict[SiteKey, Edit]:
    """The patches of a cell as edits by (site, layer); of two at one place the later comes behind the earlier."""
    edits: dict[SiteKey, Edit] = {}
    for patch in cell:
        key = (patch.site, patch.layer)
        if key not in edits:
            edits[key] = patch.edit
        else:
            edits[key] = then(edits[key], patch.edit)
    return edits


def then(first: Edit, second: Edit) -> Edit:
    """One edit behind the other."""
    return lambda value: second(first(value))


def gradients(
    grad_of: GradOf, logits: Float[Tensor, "batch pos vocab"], activations: Mapping[SiteKey, Tensor]
) -> dict[SiteKey, Tensor]:
    """Gradient of one number at captured values.

    Raises:
        InputError: `grad_of` does not give one number, or a captured value has no part in it.
    """
    with torch.enable_grad():  # whatever the caller's mode is
        target = grad_of(logits)
    if target.numel() != 1:
        raise InputError("grad_of must give one number", expected="a tensor of one element", found=list(target.shape))
    found = torch.autograd.grad(target.reshape(()), list(activations.values()), allow_unused=True)
    missing = [f"{site}.{layer}" for (site, layer), grad in zip(activations, found, strict=True) if grad is None]
    if missing:
        raise InputError(
            "the number that is differentiated does not depend on a captured site",
            expected="sites in front of the positions that grad_of reads",
            found=missing,
        )
    return {key: grad.detach() for key, grad in zip(activations, found, strict=True)}
