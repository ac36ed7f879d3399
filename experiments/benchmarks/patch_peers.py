"""The pairs of the patch sweep benchmark, and how other tools patch them: TransformerLens, nnsight, plain hooks.

A peer reads the source run once (`prepare`) and then makes one forward pass a cell (`cells`).
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch

from latentkt.internals import engine_of
from latentkt.models import ModelHandle, Pair, encode, make_pair

FILLER = (
    " They like to read books, to walk along the river in the evening, and to cook for their friends. The days are"
    " long in summer and short in winter, and the children go to school in the morning. On Sundays the families meet"
    " in the park, sit in the shade of the trees, and talk about the week that has passed and the week that is to come."
)
COUNTRIES = ("France", "Italy", " Paris", " Rome")
PROMPTS: dict[str, tuple[str, str, str, str, str]] = {  # name -> (text, word of the base, of the source, y*, y_s)
    "early 1": (
        "In the city of {}, people go to work each day and speak to each other in",
        "Paris", "Rome", " French", " Italian",
    ),
    "early 2": ("A long time ago, {} sent its best young people to study in the old city of", *COUNTRIES),
    "early 3": (
        "The old man who came from {} told his friends that he had always lived in the city of",
        "Japan", "Spain", " Tokyo", " Madrid",
    ),
    "late": ("Here is a short question for you, my friend: what is the capital of {}? It is", *COUNTRIES),
    "long": (
        "My brother and his wife moved last year to a small house in {}." + FILLER + " The capital of their country is",
        *COUNTRIES,
    ),
}  # fmt: skip


def make(handle: ModelHandle, name: str) -> Pair:
    """One of the fixed pairs."""
    text, base, source, correct, shortcut = PROMPTS[name]
    prompts = []
    for word in (base, source):
        start = text.index("{}")
        spans = {"shortcut": [(start, start + len(word))]}
        prompts.append(encode(handle, text.format(word), chat=False, spans=spans))
    return make_pair(handle, *prompts, correct=correct, shortcut=shortcut, name=name)


class Plain:
    """One forward a cell with a plain hook; logits of the last position only."""

    def __init__(self, handle: ModelHandle) -> None:
        self.handle = handle

    def prepare(self, pair: Pair, site: str = "resid_post") -> dict[int, torch.Tensor]:
        """Values of a site in the source run, by layer."""
        keys = [(site, layer) for layer in range(self.handle.n_layers)]
        values = engine_of(self.handle, "reference").values(pair.source.ids, keys)
        return {layer: value for (_, layer), value in values.items()}

    def cell(
        self, pair: Pair, site: str, layer: int, positions: list[int], values: torch.Tensor, head: int | None
    ) -> float:
        """Metric of one cell."""
        arch = self.handle.arch
        modules = {"resid_post": arch.layers[layer], "attn_out": arch.attention(layer), "mlp_out": arch.mlp(layer)}
        module = arch.out_proj(layer) if site == "z" else modules[site]

        def change(x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            if head is None:
                x[0, positions] = values[positions]
            else:
                width = self.handle.d_head
                x[0, positions, head * width : (head + 1) * width] = values[positions, head]
            return x

        if site == "z":
            hook = module.register_forward_pre_hook(lambda m, args: (change(args[0]),))
        else:
            hook = module.register_forward_hook(
                lambda m, args, out: (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)
            )
        try:
            with torch.inference_mode():
                ids = torch.tensor([pair.base.ids], device=self.handle.device)
                logits = self.handle.model(ids, use_cache=False, logits_to_keep=1).logits[0, -1]
        finally:
            hook.remove()
        return float(logits[pair.answers.correct_ids[0]] - logits[pair.answers.shortcut_ids[0]])

    def cells(self, pair: Pair, values: dict[int, torch.Tensor], cells: list[tuple[int, int]]) -> list[float]:
        """Metric of each (layer, position) cell."""
        return [self.cell(pair, "resid_post", layer, [p], values[layer], None) for layer, p in cells]


class TransformerLens:
    """Its own sweep function, on the given cells."""

    def __init__(self, handle: ModelHandle) -> None:
        self.bridge = engine_of(handle, "transformer_lens")._bridge

    def prepare(self, pair: Pair) -> Any:
        """Its cache of the source run."""
        source = torch.tensor([pair.source.ids], device=self.bridge.cfg.device)
        with torch.inference_mode():
            _, cache = self.bridge.run_with_cache(source, names_filter=lambda name: name.endswith("hook_resid_post"))
        return cache

    def cells(self, pair: Pair, cache: Any, cells: list[tuple[int, int]]) -> list[float]:
        """Metric of each (layer, position) cell."""
        from transformer_lens import patching

        bridge = self.bridge
        base = torch.tensor([pair.base.ids], device=bridge.cfg.device)
        correct, shortcut = pair.answers.correct_ids[0], pair.answers.shortcut_ids[0]
        frame = pd.DataFrame(cells, columns=["layer", "pos"])
        with torch.inference_mode():
            found = patching.generic_activation_patch(
                bridge,
                base,
                cache,
                lambda logits: logits[0, -1, correct] - logits[0, -1, shortcut],
                patching.layer_pos_patch_setter,
                "resid_post",
                index_df=frame,
            )
        found = getattr(found, "results", found)
        return [float(x) for x in torch.as_tensor(found).flatten()]


class NNsight:
    """One trace a cell."""

    def __init__(self, handle: ModelHandle) -> None:
        import nnsight

        self.handle = handle
        self.engine = engine_of(handle, "nnsight")
        self.traced = nnsight.NNsight(self.engine._model)

    def prepare(self, pair: Pair) -> Any:
        """Values of the source run."""
        return self.engine.values(pair.source.ids, [("resid_post", layer) for layer in range(self.handle.n_layers)])

    def cells(self, pair: Pair, source: Any, cells: list[tuple[int, int]]) -> list[float]:
        """Metric of each (layer, position) cell."""
        import nnsight

        ids = torch.tensor([pair.base.ids], device=self.handle.device)
        correct, shortcut = pair.answers.correct_ids[0], pair.answers.shortcut_ids[0]
        found = []
        for layer, position in cells:
            block = self.engine._envoy(self.traced, self.handle.arch.layers[layer])
            values = source["resid_post", layer]
            with torch.inference_mode(), self.traced.trace(ids, use_cache=False, logits_to_keep=1):
                block.output[:, position] = values[position]
                logits = nnsight.save(self.traced.output.logits)
            found.append(float(logits[0, -1, correct] - logits[0, -1, shortcut]))
        return found
