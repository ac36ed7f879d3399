"""Train a network and keep it: world, Hugging Face folder, times; and what a run writes of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.synthetic.network import export
from latentkt.synthetic.training import train

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.progress import Bar
    from latentkt.synthetic.actions import ActionStream
    from latentkt.synthetic.network import Network
    from latentkt.synthetic.rstream import PathStream
    from latentkt.synthetic.streams import FactStream
    from latentkt.synthetic.training import TrainingConfig

__all__ = ["train_and_keep"]


def train_and_keep(
    stream: FactStream | ActionStream | PathStream, config: TrainingConfig, *, seed: int, folder: Path, bar: Bar
) -> tuple[Network, dict[str, pd.DataFrame]]:
    """Train on a stream and write the folder of the network.

    Returns:
        The network on the CPU, and two tables: `training` (by epoch, without times, so that a resumed run's tables
        equal an unbroken one's) and `networks` (size, hashes of weights and world). Times are in `times.json`.
    """
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "world.json").write_text(stream.world.to_json(), encoding="utf-8")
    trained = train(stream, config, seed=seed, folder=folder, bar=bar)
    network = trained.network.cpu()
    export(network, stream.vocabulary, folder)
    times = {"tokens_per_second": trained.tokens_per_second, "wall_s": trained.wall_s, "cpu_s": trained.cpu_s}
    (folder / "times.json").write_text(json.dumps(times) + "\n", encoding="utf-8")
    hashes = {
        f"{name}_sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for name, file in (("weights", "model.safetensors"), ("world", "world.json"))
    }
    return network, {
        "training": pd.DataFrame(trained.history).drop(columns=["seconds", "cpu_seconds"]),
        "networks": pd.DataFrame([{"parameters": network.parameter_count, **hashes}]),
    }
