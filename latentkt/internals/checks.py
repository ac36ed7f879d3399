"""Identities that hold for any model: each patched pair is held to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.errors import RunError
from latentkt.internals.engines.base import Cell, Patch
from latentkt.internals.places import role_positions

if TYPE_CHECKING:
    from latentkt.internals.engines.base import Engine
    from latentkt.internals.metrics import AnswerScore, Scorer
    from latentkt.models import Pair

__all__ = ["Identities"]


@dataclass(frozen=True)
class Identities:
    """Two patches whose outcome is known.

    Attributes:
        cells: The patches from the run itself, one a site, then the patch of all embeddings (where all tokens align).
        full: Whether the last cell is the full patch.
        name: The pair.
        tolerance: Nats.
    """

    cells: list[Cell] = field(default_factory=list)
    full: bool = False
    name: str = ""
    tolerance: float = 0.0

    @classmethod
    def of(cls, engine: Engine, pair: Pair, sites: Sequence[str], layers: Sequence[int], scorer: Scorer) -> Identities:
        """The identities of one pair: at the middle layer and the last prompt token, and on all embeddings."""
        layer, last = layers[len(layers) // 2], len(pair.base.ids) - 1
        keys = [(site, layer) for site in sites if site != "pattern"]
        own = engine.values(pair.base.ids, keys) if keys else {}
        cells: list[Cell] = [(Patch(site, at, (last,), own[site, at][[last]]),) for site, at in keys]
        everywhere = role_positions(pair, "all").behind(pair.alignment.first_difference)
        full = not pair.alignment.shifted and not pair.alignment.unmapped and bool(everywhere.base)
        if full:
            embedded = engine.values(pair.source.ids, [("resid_pre", 0)])["resid_pre", 0]
            cells.append((Patch("resid_pre", 0, everywhere.base, embedded[list(everywhere.source)]),))
        exact = engine.handle.dtype == torch.float32
        return cls(cells, full, pair.name, 1e-3 if exact else 0.5)

    def errors(self, scores: list[AnswerScore], base: AnswerScore, source: AnswerScore | None) -> dict[str, object]:
        """The two deviations in nats, for the table.

        Raises:
            RunError: One is larger than rounding can make it.
        """
        alone = scores[:-1] if self.full else scores
        own = max((abs(score.value - base.value) for score in alone), default=np.nan)
        whole = abs(scores[-1].value - source.value) if self.full and source else np.nan
        for what, error in (("a patch from the run itself moves the answer", own),
                            ("a patch of all embeddings does not reproduce the source run", whole)):  # fmt: skip
            if error > self.tolerance:
                raise RunError(
                    f"pair {self.name!r}: {what}",
                    expected=f"at most {self.tolerance:g} nat",
                    found=f"{error:.3g} nat",
                    fix="use engine='reference', and report the model",
                )
        return {"self_patch_error": own, "full_patch_error": whole}
