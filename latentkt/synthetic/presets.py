"""Named configurations: a world and a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from latentkt.errors import InputError
from latentkt.synthetic.actions import ActionConfig
from latentkt.synthetic.make import COOCCURRING, INDEPENDENT, WorldConfig
from latentkt.synthetic.network import NetworkConfig
from latentkt.synthetic.training import TrainingConfig
from latentkt.synthetic.world import Cluster

__all__ = ["PRESETS", "Preset", "preset"]


@dataclass(frozen=True)
class Preset:
    """A configuration with its purpose.

    Attributes:
        name: What the command line calls it.
        purpose: One sentence.
        world: Numbers the world of each seed is made from.
        training: How a network is trained on it.
    """

    name: str
    purpose: str
    world: WorldConfig | ActionConfig
    training: TrainingConfig


NEVER, DECISIVE = Cluster(INDEPENDENT, 0.0), Cluster(COOCCURRING, 0.2)
RANDOM_WORD = Cluster(INDEPENDENT, 0.2, noise=0.5)
SMALL = WorldConfig(clusters=(NEVER, DECISIVE))

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "small",
            "Opposed keys never co-occur in one cluster and do in the other: the shortcut and its control in one "
            "network.",
            SMALL,
            TrainingConfig(),
        ),
        Preset(
            "uninformative",
            "As small, but the first cluster also sees opposed pairs, their polarity word random: Assumption 3.1(ii)"
            " holds by construction, so λ = 0 and the other relation counts for nothing.",
            replace(SMALL, clusters=(RANDOM_WORD, DECISIVE)),
            TrainingConfig(),
        ),
        Preset(
            "long",
            "As small, trained on 28 redrawn epochs: the slope comes down to 1.",
            SMALL,
            TrainingConfig(epochs=28),
        ),
        Preset(
            "soft",
            "As small, answers learned from the exact probabilities: a numerical check of the law.",
            SMALL,
            TrainingConfig(soft_labels=True),
        ),
        *(
            Preset(f"action-{regime}", purpose, ActionConfig(regime=regime), TrainingConfig())
            for regime, purpose in (
                ("never", "Cues that never meet in a document: nothing determines the answer to a conflict."),
                ("prior", "Conflicts are answered by the cue that the document is counted for: the prior decides."),
                ("constraint", "Conflicts are always answered by the constraint cue."),
            )
        ),
        Preset(
            "smoke",
            "Seconds: shows that everything runs. Its figures mean nothing.",
            replace(SMALL, levels=8, counts={"kind": "geometric", "low": 4, "high": 32}, held_same=1, held_opposed=2),
            TrainingConfig(epochs=2, warm_up=10),
        ),
        Preset(
            "large",
            "For a GPU: 512 entities, four relations, 16 clusters with rising co-occurrence, four layers.",
            WorldConfig(
                levels=16,
                relations=4,
                clusters=tuple(
                    Cluster(f"rho-{share:g}-{copy}", share)
                    for share in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8)
                    for copy in (1, 2)
                ),
                counts={"kind": "geometric", "low": 8, "high": 2048},
            ),
            TrainingConfig(
                network=NetworkConfig(layers=4, width=256, heads=8),
                batch=512,
                learning_rate=2e-3,
                device="cuda",
            ),
        ),
    )
}


def preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """A preset, with some of its numbers changed.

    Args:
        name: One of `PRESETS`.
        overrides: Dotted names to values: "training.epochs", "training.network.layers", "world.levels", …; `rho` and
            `noise` stand for the opposed_share and noise of the last cluster.

    Raises:
        InputError: If a name is unknown.

    Example:
        >>> preset("small", {"training.epochs": 3, "rho": 0.5}).world.clusters[1].opposed_share
        0.5
    """
    if name not in PRESETS:
        raise InputError(f"no preset {name!r}", expected=", ".join(PRESETS), found=name)
    chosen = PRESETS[name]
    for path, value in (overrides or {}).items():
        chosen = _set(chosen, _SHORT.get(path, path).split("."), value, path)
    return chosen


_SHORT = {
    "rho": "world.last_cluster.opposed_share",
    "noise": "world.last_cluster.noise",
    "depth": "training.network.layers",
    "epochs": "training.epochs",
}


def _set(target: Any, path: list[str], value: Any, name: str) -> Any:
    if path[0] == "last_cluster" and isinstance(target, WorldConfig):
        last = _set(target.clusters[-1], path[1:], value, name)
        return replace(target, clusters=(*target.clusters[:-1], last))
    known = [field.name for field in fields(target)] if is_dataclass(target) else []
    if path[0] not in known:
        raise InputError(f"no setting {name!r}", expected=", ".join([*known, *_SHORT]), found=path[0])
    if len(path) > 1:
        value = _set(getattr(target, path[0]), path[1:], value, name)
    elif isinstance(getattr(target, path[0]), tuple) and isinstance(value, list):
        value = tuple(value)
    return replace(target, **{path[0]: value})
