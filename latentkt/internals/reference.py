"""The slow oracle: one plain forward pass a cell, with a hook that replaces a layer's output.

It shares with the staircase the tokens and the definition of the score, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import RunError
from latentkt.internals.metrics import AnswerScore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["patched_score", "residual_stream"]


def patched_score(
    handle: ModelHandle,
    prompt: Sequence[int],
    answers: tuple[Sequence[int], Sequence[int]],
    *,
    layer: int | None = None,
    positions: Sequence[int] = (),
    values: Float[Tensor, "position d_model"] | None = None,
) -> AnswerScore:
    """Score two answers after a prompt, with `resid_post` of `layer` replaced at `positions` (nothing where None)."""
    logps = []
    for answer in answers:
        fired = []

        def replace(module: Any, args: Any, output: Any, fired: list[int] = fired) -> Any:
            hidden = (output[0] if isinstance(output, tuple) else output).clone()
            hidden[0, list(positions)] = values
            fired.append(1)
            return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

        hook = None if layer is None else handle.arch.layers[layer].register_forward_hook(replace)
        try:
            ids = torch.tensor([[*prompt, *answer]], device=handle.device)
            with torch.inference_mode():
                logits = handle.logits(ids, torch.ones_like(ids))[0].double()
        finally:
            if hook is not None:
                hook.remove()
        if layer is not None and not fired:
            raise RunError(f"the patch of layer {layer} never ran", fix="check that the layer belongs to the model")
        logp = logits[len(prompt) - 1 : -1].log_softmax(-1)
        logps.append(logp[torch.arange(len(answer)), torch.tensor(list(answer))])
    differ = next(i for i, (a, b) in enumerate(zip(*answers, strict=False)) if a != b)
    first = float(logps[0][differ] - logps[1][differ])
    return AnswerScore(float(logps[0].sum()), float(logps[1].sum()), first)


def residual_stream(handle: ModelHandle, prompt: Sequence[int]) -> Float[Tensor, "layer position d_model"]:
    """Output of every block on a prompt, by plain hooks."""
    kept: list[Tensor] = []
    hooks = [
        layer.register_forward_hook(lambda m, a, out: kept.append(out[0] if isinstance(out, tuple) else out))
        for layer in handle.arch.layers
    ]
    try:
        ids = torch.tensor([list(prompt)], device=handle.device)
        with torch.inference_mode():
            handle.logits(ids, torch.ones_like(ids))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack([hidden[0] for hidden in kept])
