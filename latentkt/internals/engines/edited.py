"""An engine with standing edits: every measurement on it is one of the edited model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from latentkt.internals.engines.base import Edit, Engine, EngineRun, GradOf, SiteKey, then

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["EditedEngine", "edited"]


class EditedEngine(Engine):
    """Runs another engine with edits in place; sweeps make one forward a cell.

    Args:
        engine: The engine that runs the model.
        edits: By (site, layer), a function of the value that gives the new value. A measurement's own edit of the same
            site and layer comes behind it.
    """

    def __init__(self, engine: Engine, edits: Mapping[SiteKey, Edit]) -> None:
        super().__init__(engine.handle)
        self._engine, self._edits = engine, dict(edits)
        self.require(self._edits)
        self.name = f"{engine.name}, edited"  # type: ignore[misc]

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
        both = dict(self._edits)
        for key, edit in (edits or {}).items():
            both[key] = then(both[key], edit) if key in both else edit
        return self._engine.run(ids, mask, capture=capture, edits=both, grad_of=grad_of)


def edited(model: ModelHandle | Engine, edits: Mapping[SiteKey, Edit], *, engine: str = "fast") -> Engine:
    """An engine on the edited model, to be given to any measurement in place of the model.

    Args:
        model: An opened model, or an engine.
        edits: By (site, layer), a function of the value `[batch, pos, …]` that gives the new value.
        engine: Which engine runs the model.

    Raises:
        InputError: A site is unknown, or the model lacks it.

    Example:
        >>> from latentkt.internals import answer_lens, edited, item_run
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> without = edited(handle, {("mlp_out", 29): lambda value: 0 * value})
        >>> tables = [answer_lens(one, [item_run(handle, item)])[0] for one in (handle, without)]
        >>> [float(table["log_odds"].iloc[-1].round(1)) for table in tables]
        [-0.9, -13.5]
    """
    from latentkt.internals.engines import engine_of

    return EditedEngine(engine_of(model, engine), edits)
