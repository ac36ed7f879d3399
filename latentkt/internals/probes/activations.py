"""Rows for probes: what stands in the residual stream at roles of a prompt, and in a model that has learned nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.errors import InputError
from latentkt.internals.engines import engine_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.store import ActivationStore
    from latentkt.models import Encoded, ModelHandle

__all__ = ["mean_over_roles", "random_init", "role_features"]


def mean_over_roles(
    model: ModelHandle | Engine, prompt: Encoded, roles: Sequence[str]
) -> dict[str, Float[np.ndarray, "entry d_model"]]:
    """The residual stream at roles: the mean over a role's tokens, special ones left out.

    Args:
        model: An opened model, or an engine (which may have the prompt's run at hand).
        prompt: The prompt.
        roles: Roles; `last` is the last prompt token.

    Returns:
        By role, entry 0 the embedding and entry l + 1 what leaves layer l. A role without a token that is not special
        is left out.
    """
    engine = engine_of(model)
    keys = [("resid_pre", 0), *(("resid_post", layer) for layer in range(engine.handle.n_layers))]
    places = {role: _plain_positions(prompt, role) for role in roles}
    values = engine.values(prompt.ids, keys)
    found = {}
    for role, positions in places.items():
        if positions:
            found[role] = torch.stack([values[key][positions].float().mean(0) for key in keys]).cpu().numpy()
    return found


def _plain_positions(prompt: Encoded, role: str) -> list[int]:
    positions = [len(prompt.ids) - 1] if role == "last" else prompt.positions(role)
    return [position for position in positions if not prompt.is_special[position]]


def role_features(
    store: ActivationStore, *, site: str = "resid_post", role: str = "last"
) -> tuple[Float[np.ndarray, "prompt layer d_model"], list[int], list[int]]:
    """Features for `probe_table` from an activation store: the mean over a role's tokens, special ones left out.

    Args:
        store: Written by `collect`.
        site: A site of the store.
        role: A role, or `last` for each prompt's last stored token.

    Returns:
        Features, the numbers of their prompts, and the layers.

    Raises:
        InputError: The store lacks the site, or has no such token that is not special.
    """
    layers = sorted(layer for name, layer in store.keys if name == site)
    if not layers:
        raise InputError("a site that the store does not hold", expected=sorted({n for n, _ in store.keys}), found=site)
    rows = store.rows.reset_index(drop=True)
    last = rows["position"] == rows.groupby("prompt")["position"].transform("max")
    chosen = rows[(last if role == "last" else rows["role"] == role) & ~rows["is_special"].astype(bool)]
    if chosen.empty:
        raise InputError(
            f"the store has no token of role {role!r} that is not special", found=sorted(set(rows["role"]))
        )
    arrays = [np.asarray(store[site, layer]) for layer in layers]
    parts = [(prompt, chosen.index[chosen["prompt"] == prompt].to_numpy()) for prompt in chosen["prompt"].unique()]
    features = np.stack([np.stack([array[where].mean(0) for array in arrays]) for _, where in parts])
    return features, [int(prompt) for prompt, _ in parts], layers


@lru_cache(maxsize=1)
def random_init(handle: ModelHandle, *, seed: int = 0, layers: int | None = None) -> ModelHandle:
    """A model of the same architecture whose weights and embeddings are drawn anew, as before any training.

    Args:
        handle: The model whose architecture and tokenizer are taken.
        seed: Seed of the weights.
        layers: So many layers only; the residual stream up to there is that of the whole random model.

    Raises:
        InputError: The number of layers does not fit.
    """
    import copy

    from transformers import AutoModelForCausalLM

    from latentkt.models import handle_from_hf

    config = copy.deepcopy(handle.config)
    if layers is not None:
        if not 1 <= layers <= handle.n_layers:
            raise InputError("layers of a random model", expected=f"1 to {handle.n_layers}", found=layers)
        config.num_hidden_layers = layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:layers]
    state = torch.random.get_rng_state()
    try:
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, attn_implementation=handle.attn_implementation)
    finally:
        torch.random.set_rng_state(state)
    return handle_from_hf(model.eval(), handle.tokenizer, name=f"{handle.name}, random weights", check=False)
