"""How the look inside is done: everything that its tables depend on besides the model and the concepts."""

from __future__ import annotations

from dataclasses import dataclass

from latentkt.errors import InputError
from latentkt.phantom.inside.activations import FRAME
from latentkt.phantom.inside.contrasts import CONTRASTS
from latentkt.phantom.inside.steering import DOSES

__all__ = ["InsideOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideOptions:
    """How the look inside is done.

    Attributes:
        frame: The question in which concepts are read.
        contrasts: Names of what is told apart (see `CONTRASTS`).
        template: `chat` or `plain`; None: chat where the tokenizer has a template.
        system: A system prompt in place of the template's own.
        kind: Kind of probe: `logistic`, `ridge`, `lda` or `mean_difference`.
        pairs: At most so many matched pairs a contrast.
        caliper: See `match_concepts`.
        max_folds: Folds of the probes.
        steer_layer: After which layer states are pushed; None: the middle one, so that none is picked for its effect.
        steer_concepts: Concepts that are pushed: half made, half real.
        placebos: Random directions beside the probe's.
        doses: See `latentkt.phantom.inside.steering`.
        seed: Of everything that is drawn.
    """

    frame: str = FRAME
    contrasts: tuple[str, ...] = tuple(contrast.name for contrast in CONTRASTS)
    template: str | None = None
    system: str | None = None
    kind: str = "ridge"
    pairs: int = 200
    caliper: float = 0.25
    max_folds: int = 5
    steer_layer: int | None = None
    steer_concepts: int = 20
    placebos: int = 4
    doses: tuple[float, ...] = DOSES
    seed: int = 0

    def __post_init__(self) -> None:
        known = [contrast.name for contrast in CONTRASTS]
        if not self.contrasts or set(self.contrasts) - set(known):
            raise InputError("contrasts", expected=f"some of {', '.join(known)}", found=", ".join(self.contrasts))
        for name, value, low in (
            ("pairs", self.pairs, 10),
            ("max_folds", self.max_folds, 2),
            ("steer_concepts", self.steer_concepts, 0),
            ("placebos", self.placebos, 1),
            ("steer_concepts, of each side", self.steer_concepts // 2, min(1, self.steer_concepts)),
        ):
            if value < low:
                raise InputError(f"{name} is wrong", expected=f">= {low}", found=value)
