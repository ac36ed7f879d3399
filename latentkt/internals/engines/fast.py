"""The own engine: the Hugging Face modules themselves, and sweeps by staircase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from latentkt.internals.branches import Branches
from latentkt.internals.budget import Budget
from latentkt.internals.engines.base import (
    STREAM,
    Cell,
    Edit,
    Engine,
    EngineRun,
    FromRun,
    GradOf,
    Patch,
    SiteKey,
    gradients,
)
from latentkt.internals.growing import Growing, grow
from latentkt.internals.metrics import AnswerScore, Scorer
from latentkt.internals.recording import Recording, record, record_together
from latentkt.internals.staircase import climb
from latentkt.internals.tables import variants_of
from latentkt.models.sites import attached
from latentkt.models.sites import record as seen_sites

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["FastEngine"]

_KEPT_RECORDINGS = 4  # both runs of a pair in both directions, and a donor's


class FastEngine(Engine):
    """Hooks on the model's own modules; sweeps of single patches climb the staircase, equal to 1e-4 nat.

    Args:
        handle: The model.
        memory_mb: Working memory of a sweep, weights and plain runs not counted: sizes the batches. Default 600.

    Raises:
        InputError: `memory_mb` is too little for the model, or more than is free.
    """

    name = "fast"

    def __init__(self, handle: ModelHandle, *, memory_mb: float | None = None) -> None:
        super().__init__(handle)
        self._budget = Budget.of(handle, memory_mb)
        self._recordings: dict[Branches, Recording] = {}

    def run(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None = None,
        *,
        capture: Iterable[SiteKey] = (),
        edits: Mapping[SiteKey, Edit] | None = None,
        grad_of: GradOf | None = None,
    ) -> EngineRun:
        """See `Engine.run`."""
        wanted, site = self.require(capture), self.handle.arch.site
        kept: dict[SiteKey, Tensor] = {}

        def keep(key: SiteKey) -> Edit:
            def seen(value: Tensor) -> Tensor | None:
                kept[key] = value
                followed = grad_of is not None and key[0] != "pattern"
                return value if followed else None  # what follows must hang on this very tensor

            return seen

        changes = [(site(*key), edit) for key, edit in (edits or {}).items()]
        if grad_of is not None:  # no parameter requires a gradient: the graph begins at the first block
            changes.insert(0, (site("resid_pre", 0), lambda value: value.detach().requires_grad_()))
        with (
            torch.set_grad_enabled(grad_of is not None),
            attached(changes),
            attached([(site(*key), keep(key)) for key in wanted]),
        ):
            logits = self.handle.logits(ids, mask)
        found = {key: kept[key] for key in wanted}
        grads = gradients(grad_of, logits, found) if grad_of else {}
        return EngineRun(logits.detach(), {key: value.detach() for key, value in found.items()}, grads)

    def record(self, branches: Branches) -> Recording:
        """The recorded run of a prompt with its answers; the last few are kept."""
        found = self._recordings.pop(branches, None) or record(self.handle, branches)
        self._keep([found])
        return found

    def _keep(self, runs: Sequence[Recording]) -> None:
        """Keep runs, and let the oldest go."""
        self._recordings |= {run.branches: run for run in runs[:_KEPT_RECORDINGS]}
        while len(self._recordings) > _KEPT_RECORDINGS:
            self._recordings.pop(next(iter(self._recordings)))

    def scores(self, scorers: Sequence[Scorer]) -> list[AnswerScore]:
        """See `Engine.scores`; runs of one shape that are not recorded yet are recorded in one batch."""
        self._record_together([s.branches for s in scorers[:_KEPT_RECORDINGS] if s.branches not in self._recordings])
        return [self.score(scorer) for scorer in scorers]

    def _record_together(self, runs: list[Branches]) -> None:
        if len({(run.n_prompt, *map(len, run.answers)) for run in runs}) == 1:
            self._keep(record_together(self.handle, runs))

    def forget(self) -> None:
        """Let the kept runs go; to be called when the model has been changed."""
        self._recordings.clear()

    def values(self, prompt: Sequence[int], wanted: Iterable[SiteKey]) -> dict[SiteKey, Tensor]:
        """See `Engine.values`; residual sites of a prompt that is recorded are taken from there."""
        keys = self.require(wanted)
        entry = {(site, layer): layer + (site == "resid_post") for site, layer in keys if site in STREAM}
        known = next((run for b, run in self._recordings.items() if b.prompt == tuple(prompt)), None)
        if known is None or len(entry) < len(keys):
            with torch.no_grad(), seen_sites(self.handle.arch.site(*key) for key in keys) as seen:
                self.handle.run_blocks(torch.tensor([list(prompt)]))  # no vocabulary: half the time of a small model
            return {key: seen[key][0].transpose(0, 1) if key[0] == "pattern" else seen[key][0] for key in keys}
        return {key: known.resid[at, : len(prompt)] for key, at in entry.items()}

    def readers(self, scorer: Scorer) -> Float[Tensor, "entry reader d_model"]:
        """See `Engine.readers`."""
        return self.record(scorer.branches).resid[:, scorer.branches.readers]

    def score(self, scorer: Scorer) -> AnswerScore:
        """See `Engine.score`."""
        recording = self.record(scorer.branches)
        with torch.inference_mode():
            return scorer.from_resid(self.handle, recording.resid[-1:, scorer.branches.readers])[0]

    def sweep(self, scorer: Scorer, cells: Sequence[Cell]) -> list[AnswerScore]:
        """See `Engine.sweep`: cells of one patch by staircase, others one forward each."""
        self.require_named(cells)
        growing = self._growing(scorer, cells)
        runs = self._recorded(scorer.branches, cells) if growing is None else growing.recordings
        if not _are_looked_up(cells):
            cells = self.settled(cells)
        budgeted = replace(scorer, rows=self._budget.vocabulary_rows)
        scores: dict[int, AnswerScore] = {}
        for part in self._slices(runs[0], cells):
            chunk, others = self._budget.chunk_tokens, runs[1:]
            variants = variants_of(self.handle, runs[0], part, chunk_tokens=chunk, others=others)
            scores |= climb(self.handle, runs[0], variants, budgeted, budget=self._budget, growing=growing)
            growing = None
        self._keep(runs)
        for number, cell in enumerate(cells):
            if number not in scores:
                scores[number] = self._score_cell(budgeted, cell) if cell else self.score(budgeted)
        return [scores[number] for number in range(len(cells))]

    def _growing(self, scorer: Scorer, cells: Sequence[Cell]) -> Growing | None:
        """The base run and those that patches name, where they can go through the layers with the sweep.

        Nothing may be asked of them before, so every patch names its values.
        """
        runs = _runs(scorer.branches, cells)
        fresh = len(runs) > 1 and not any(run in self._recordings for run in runs)
        named = all(isinstance(patch.values, FromRun) for cell in cells for patch in cell)
        return grow(self.handle, runs) if fresh and named and _are_looked_up(cells) else None

    def _recorded(self, base: Branches, cells: Sequence[Cell]) -> list[Recording]:
        """The base run and those that patches name."""
        runs = _runs(base, cells)
        self._record_together([run for run in runs if run not in self._recordings][:_KEPT_RECORDINGS])
        return [self.record(run) for run in runs]

    def _slices(self, recording: Recording, cells: Sequence[Cell]) -> Iterator[dict[int, Patch]]:
        """Cells of one patch, from the latest position to the earliest, as many as their vectors leave room for."""
        single = {number: cell[0] for number, cell in enumerate(cells) if len(cell) == 1}
        n_tokens = recording.resid.shape[1]
        part: dict[int, Patch] = {}
        held = 0
        for number in sorted(single, key=lambda number: (-single[number].positions[0], number)):
            patch = single[number]
            size = n_tokens - patch.positions[0] if patch.site in ("k", "v") else len(patch.positions)
            if part and held + size > self._budget.stacked_tokens:
                yield part
                part, held = {}, 0
            part[number] = patch
            held += size
        if part:
            yield part


def _runs(base: Branches, cells: Sequence[Cell]) -> list[Branches]:
    """The base run and the runs that patches name, with the same answers."""
    named = [patch.values.prompt for cell in cells for patch in cell if isinstance(patch.values, FromRun)]
    return [base, *(replace(base, prompt=prompt) for prompt in dict.fromkeys(named) if prompt != base.prompt)]


def _are_looked_up(cells: Sequence[Cell]) -> bool:
    """Whether the staircase can look named values up itself: those between layers, in cells of one patch."""
    return all(
        patch.site in STREAM and len(cell) == 1 for cell in cells for patch in cell if isinstance(patch.values, FromRun)
    )
