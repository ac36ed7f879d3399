"""Norms in closed form: gain, bias, epsilon, and whether the mean is taken off.

Attribution splits a norm into a scale (which depends on the vector) and a linear part (which does not); both are read
from here, and opening a model proves that this closed form is what the model applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from latentkt.errors import ModelRefusedError

__all__ = ["NormReading", "read_norm"]


@dataclass(frozen=True, slots=True, eq=False)
class NormReading:
    """A norm as formula: `gain * (x - mean if centred) / sqrt(variance or mean square + eps) + bias`.

    Attributes:
        gain: `[d_model]`, float32; what multiplies the normalised vector (1 + weight in Gemma's norms).
        bias: `[d_model]` or None.
        eps: The number under the root.
        centred: True for LayerNorm, False for RMSNorm.
    """

    gain: Float[Tensor, " d_model"]
    bias: Float[Tensor, " d_model"] | None
    eps: float
    centred: bool

    def scale(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch 1"]:
        """What each vector is divided by."""
        x = x.float()
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
        return (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()

    def __call__(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The norm of `x`, in float32."""
        scale = self.scale(x)
        x = x.float()
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
        out = self.gain * x / scale
        return out if self.bias is None else out + self.bias


def read_norm(module: nn.Module) -> NormReading:
    """Read the formula of a norm module.

    Raises:
        ModelRefusedError: The module is no LayerNorm and no RMSNorm that is known.

    Example:
        >>> norm = torch.nn.LayerNorm(4)
        >>> x = torch.tensor([[1.0, 2.0, 3.0, 5.0]])
        >>> bool(torch.allclose(read_norm(norm)(x), norm(x), atol=1e-6))
        True
    """
    kind = type(module).__name__
    eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    centred = "LayerNorm" in kind
    if eps is None or not (centred or "RMSNorm" in kind):
        raise ModelRefusedError(
            f"a norm of class {kind} is not known",
            expected="a LayerNorm or an RMSNorm with an epsilon",
            found=repr(module),
            fix="add its formula to latentkt/models/norms.py",
        )
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if weight is None:
        shape = getattr(module, "normalized_shape", None)
        if shape is None:
            raise ModelRefusedError(f"a norm of class {kind} has no weight", expected="a weight", found=repr(module))
        gain = torch.ones(shape)
    else:
        gain = weight.detach().float()
    if kind.startswith("Gemma"):
        gain = gain + 1.0
    return NormReading(gain, None if bias is None else bias.detach().float(), float(eps), centred)
