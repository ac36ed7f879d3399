"""Activation store: read sites once, keep them on disk, know which model and prompts they came from.

One `.npy` file a site and layer, opened memory-mapped, beside a table of its rows and the identity of the model.
Opening it for another model (by weight hash) is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError, InputError, RunError
from latentkt.internals.engines import engine_of
from latentkt.internals.pairs import runs_of
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

    from latentkt.internals.engines.base import Engine, SiteKey
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle, Pair
    from latentkt.trapqa import TrapItem

__all__ = ["ActivationStore", "collect", "open_store"]

_SCHEMA = 1


@dataclass(frozen=True)
class ActivationStore:
    """Activations on disk.

    Attributes:
        path: The folder.
        rows: One row a prompt and position, in the order of the arrays: the prompt's `meta`, `prompt` (its number),
            `position`, `token`, `token_id`, `role`, `is_special`.
        metadata: The model's identity, the sites and layers.
    """

    path: Path
    rows: pd.DataFrame
    metadata: dict[str, Any]

    @property
    def keys(self) -> list[SiteKey]:
        """The (site, layer) pairs that are there."""
        return [(site, int(layer)) for site, layer in self.metadata["keys"]]

    def __getitem__(self, key: SiteKey) -> Float[np.ndarray, "row ..."]:
        """The values of one site and layer, memory-mapped: [row, d_model], [row, heads, d_head]."""
        if key not in self.keys:
            raise InputError("a site that the store does not hold", expected=self.keys, found=key)
        found: np.ndarray = np.load(self.path / _file(key), mmap_mode="r")
        return found

    def check_model(self, handle: ModelHandle) -> None:
        """Refuse a model whose weights are not those that were read.

        Raises:
            DataError: The weight hash differs.
        """
        known, asked = self.metadata["model"]["weight_hash"], handle.weight_hash
        if known != asked:
            raise DataError(
                f"the activations in {self.path} are of another model",
                expected=f"weights {asked[:16]}… ({handle.name})",
                found=f"weights {known[:16]}… ({self.metadata['model']['model']})",
                fix="collect them anew",
            )


@naming_out_of_memory("collecting activations", fix="collect fewer sites or layers at once")
def collect(
    model: ModelHandle | Engine,
    runs: Iterable[LensRun | Pair | TrapItem],
    path: str | os.PathLike[str],
    *,
    sites: Sequence[str] = ("resid_post",),
    layers: Sequence[int] | None = None,
    positions: str | Sequence[int] = "all",
    specials: bool = True,
    engine: str = "fast",
) -> ActivationStore:
    """Read sites on prompts and keep them: everyone's first call.

    Args:
        model: An opened model, or an engine.
        runs: What is read: trap items (item and control), pairs (both runs), or `item_run` and the like.
        path: Folder to write; refused where it exists. It appears when all is written.
        sites: Sites but `pattern`, whose shape depends on the prompt.
        layers: Layers; default all.
        positions: `all`, `last`, a role, or positions (negative ones count from the end).
        specials: Whether special tokens are kept; they are marked in `rows` in any case.
        engine: Which engine reads.

    Raises:
        InputError: An unknown or unsuitable site, no rows, a position outside a prompt.
        RunError: The folder exists.

    Example:
        >>> import tempfile
        >>> from latentkt.internals import collect
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> folder = tempfile.mkdtemp() + "/activations"
        >>> store = collect(handle, [item], folder, layers=[3, 20], positions="last")
        >>> store.keys, store["resid_post", 3].shape
        ([('resid_post', 3), ('resid_post', 20)], (2, 576))
    """
    import pandas as pd

    runner, folder = engine_of(model, engine), Path(path)
    if folder.exists():
        raise RunError(f"{folder} exists", expected="a folder that does not exist yet", fix="choose another name")
    handle = runner.handle
    if "pattern" in sites:
        raise InputError("patterns are not stored: their shape depends on the prompt", expected="other sites")
    keys = runner.require((site, layer) for site in sites for layer in (layers or range(handle.n_layers)))
    rows: list[dict[str, object]] = []
    parts: dict[SiteKey, list[np.ndarray]] = {key: [] for key in keys}
    for number, run in enumerate(runs_of(handle, runs)):
        chosen = _chosen(run, positions, specials)
        found = runner.values(run.prompt.ids, keys) if chosen else {}
        for key, value in found.items():
            parts[key].append(value[chosen].float().cpu().numpy())
        for position in chosen:
            start, stop = run.prompt.offsets[position]
            token = {"token": run.prompt.text[start:stop], "token_id": run.prompt.ids[position]}
            about = {"role": run.prompt.roles[position], "is_special": run.prompt.is_special[position]}
            rows.append({**run.meta, "prompt": number, "position": position, **token, **about})
    if not rows:
        raise InputError("no activations to keep", expected="prompts with the positions asked for", found=positions)
    metadata = {"schema": _SCHEMA, "model": handle.metadata(), "keys": keys, "n_rows": len(rows), "dtype": "float32"}
    metadata |= {"positions": positions if isinstance(positions, str) else list(positions), "specials": specials}
    _write(folder, pd.DataFrame(rows), {key: np.concatenate(part) for key, part in parts.items()}, metadata)
    return open_store(folder)


def open_store(path: str | os.PathLike[str], *, handle: ModelHandle | None = None) -> ActivationStore:
    """Open a store; with a model, refuse it where it is of another.

    Raises:
        DataError: The folder holds no store, or one of another model.
    """
    import pandas as pd

    folder = Path(path)
    if not (folder / "metadata.json").is_file():
        raise DataError(f"{folder} holds no activations", expected="a folder written by collect")
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    store = ActivationStore(folder, pd.read_parquet(folder / "rows.parquet"), metadata)
    for key in store.keys:
        if len(store[key]) != metadata["n_rows"]:
            raise DataError(f"{folder} is damaged", expected=f"{metadata['n_rows']} rows", found=len(store[key]))
    if handle is not None:
        store.check_model(handle)
    return store


def _chosen(run: LensRun, positions: str | Sequence[int], specials: bool) -> list[int]:
    length = len(run.prompt.ids)
    if isinstance(positions, str):
        named = {"all": range(length), "last": [length - 1]}
        chosen = list(named.get(positions, run.prompt.positions(positions)))
    else:
        chosen = [p + length if p < 0 else p for p in positions]
    if not all(0 <= position < length for position in chosen):
        raise InputError("position of a stored activation", expected=f"-{length} to {length - 1}", found=positions)
    return [p for p in chosen if specials or not run.prompt.is_special[p]]


def _file(key: SiteKey) -> str:
    return f"{key[0]}.{key[1]}.npy"


def _write(folder: Path, rows: pd.DataFrame, arrays: dict[SiteKey, np.ndarray], metadata: dict[str, Any]) -> None:
    """To a temporary name, then rename: a folder that is there is whole."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    for key, array in arrays.items():
        np.save(partial / _file(key), array)
    rows.to_parquet(partial / "rows.parquet")
    (partial / "metadata.json").write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
    partial.rename(folder)
