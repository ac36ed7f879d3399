"""Named directions of a site: where they come from, whose they are, and what a change along them does to a vector.

A direction belongs to one model, site and layer, and is refused elsewhere. `add` goes a step along it, `remove` sets
the coordinates on it to their mean over the rows that it was found on, `interchange` takes them from another run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.errors import DataError, InputError
from latentkt.models.norms import read_norm

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.internals.probes.fitting import Probe
    from latentkt.models import ModelHandle

__all__ = ["HOW", "Direction", "direction_of_probe", "make_direction", "random_directions", "read_and_unread"]

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
HOW = ("add", "remove", "interchange")


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction, or a few that span a subspace.

    Attributes:
        basis: Orthonormal rows, [k, d_model].
        site: Where it lives.
        layer: Its layer.
        model_hash: Weight hash of its model.
        name: Written to tables.
        scale: Length of one step of `add` (along the first row); from a probe, the distance of the class means.
        centre: Mean coordinates on the rows, [k]; `remove` sets them to these.
    """

    basis: Float[Tensor, "k d_model"]
    site: str
    layer: int
    model_hash: str
    name: str
    scale: float
    centre: Float[Tensor, " k"]

    def check_model(self, handle: ModelHandle) -> None:
        """Refuse another model's direction.

        Raises:
            DataError: The weight hash differs.
        """
        if self.model_hash != handle.weight_hash:
            raise DataError(
                f"direction {self.name!r} is of another model",
                expected=f"weights {handle.weight_hash[:16]}… ({handle.name})",
                found=f"weights {self.model_hash[:16]}…",
                fix="fit it on activations of this model",
            )

    def change(
        self,
        value: Float[Tensor, "*batch d_model"],
        how: str,
        *,
        strength: float = 1.0,
        source: Float[Tensor, "*batch d_model"] | None = None,
    ) -> Float[Tensor, "*batch d_model"]:
        """What is added to `value`.

        Args:
            value: Activations of the site.
            how: `add` (`strength` steps), `remove` or `interchange` (`strength` is the share that is done).
            strength: See `how`.
            source: What coordinates are taken from, for `interchange`.

        Raises:
            InputError: Unknown `how`, or no source to interchange with.
        """
        basis, centre = self.basis.to(value), self.centre.to(value)
        if how == "add":
            return (strength * self.scale * basis[0]).expand_as(value)
        if how == "remove":
            return strength * ((centre - value @ basis.T) @ basis)
        if how == "interchange" and source is not None:
            return strength * (((source.to(value) - value) @ basis.T) @ basis)
        raise InputError(
            "a change along a direction", expected=f"{', '.join(HOW)}; interchange with a source run", found=how
        )


def make_direction(
    handle: ModelHandle,
    vectors: Float[Tensor, "k d_model"] | Float[np.ndarray, "k d_model"] | Sequence[float],
    *,
    layer: int,
    site: str = "resid_post",
    name: str = "direction",
    scale: float | None = None,
    centre: Sequence[float] | None = None,
) -> Direction:
    """A direction of a model from one vector or a few, made orthonormal (in order).

    Args:
        handle: The model.
        vectors: One vector, or rows.
        layer: Layer of the site.
        site: `resid_pre`, `resid_mid`, `resid_post`, `attn_out` or `mlp_out`.
        name: Written to tables.
        scale: Length of one step; default the length of the first vector.
        centre: Coordinates that `remove` leaves, one a row; default 0.

    Raises:
        InputError: Another site or layer, a wrong width, vectors that are zero, not finite or dependent.

    Example:
        >>> from latentkt.models import open_model
        >>> handle = open_model("smollm2", check=False)
        >>> make_direction(handle, [1.0] + 575 * [0.0], layer=3, name="first number").basis.shape
        torch.Size([1, 576])
    """
    rows = torch.atleast_2d(torch.as_tensor(np.asarray(vectors), dtype=torch.float64))
    if site not in SITES or site not in handle.arch.sites or not 0 <= layer < handle.n_layers:
        raise InputError(
            f"no directions at {site}.{layer}",
            expected=f"{', '.join(SITES)} (those the model has), layers 0 to {handle.n_layers - 1}",
        )
    if rows.shape[1] != handle.d_model or not torch.isfinite(rows).all():
        raise InputError(f"direction {name!r}", expected=f"finite rows of {handle.d_model}", found=list(rows.shape))
    q, r = torch.linalg.qr(rows.T)
    lengths = r.diagonal()
    if (lengths.abs() <= 1e-9 * rows.norm(dim=1).max()).any():
        raise InputError(f"direction {name!r} has no length, or rows that depend on each other", found=lengths.tolist())
    basis = (q * lengths.sign()).T  # the first row points as the first vector does
    middle = torch.zeros(len(basis)) if centre is None else torch.as_tensor(np.asarray(centre), dtype=torch.float32)
    step = float(rows[0].norm()) if scale is None else scale
    return Direction(basis.float(), site, layer, handle.weight_hash, name, step, middle)


def direction_of_probe(
    handle: ModelHandle,
    probe: Probe,
    features: Float[np.ndarray, "row d_model"],
    labels: Int[np.ndarray, " row"],
    *,
    layer: int,
    site: str = "resid_post",
    name: str = "probe",
) -> Direction:
    """The direction of a fitted probe, with the step and the centre of the rows that it was fitted on.

    Args:
        handle: The model of the features.
        probe: From `fit_probe` on these rows.
        features: Its rows.
        labels: Their labels.
        layer: Layer of the site.
        site: Site of the features.
        name: Written to tables.
    """
    along = np.asarray(features, dtype=np.float64) @ probe.direction
    ones = np.asarray(labels) == 1
    step, middle = float(along[ones].mean() - along[~ones].mean()), float(along.mean())
    return make_direction(handle, probe.direction, layer=layer, site=site, name=name, scale=step, centre=[middle])


def random_directions(direction: Direction, number: int, *, seed: int = 0) -> list[Direction]:
    """Directions drawn evenly, as many rows, same site, step and centre: what any direction would do."""
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for index in range(number):
        rows = torch.randn(direction.basis.shape, generator=generator, dtype=torch.float64)
        basis = torch.linalg.qr(rows.T)[0].T.float()
        drawn.append(replace(direction, basis=basis, name=f"random {index}"))
    return drawn


def read_and_unread(
    handle: ModelHandle, direction: Direction, *, share: float = 0.9
) -> tuple[Float[Tensor, "d_model d_model"], Float[Tensor, "d_model d_model"]]:
    """Projections onto what the next weights read strongly, and onto the rest.

    The next weights of a residual stream are the input maps of the following attention and MLP (of the unembedding
    after the last layer), each with the gain of its norm; those of `attn_out` and `mlp_out` are taken at the stream
    that they enter. Strongly read is the span of their leading right singular vectors that hold `share` of the squared
    gain. With `share=1` the rest is the exact null space, which is empty for most models.

    Returns:
        Two projections that sum to the identity.
    """
    weights = torch.cat(list(_next_weights(handle, direction)), 0)
    values, vectors = torch.linalg.eigh(weights.T @ weights)
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    held = values.cumsum(0) / values.sum()
    known = values > values[0] * 1e-10
    kept = int(min((held < share).sum() + 1, known.sum())) if share < 1 else int(known.sum())
    top = vectors[:, :kept]
    strong = top @ top.T
    return strong.float(), (torch.eye(len(strong), dtype=strong.dtype) - strong).float()


def _next_weights(handle: ModelHandle, direction: Direction) -> list[Tensor]:
    arch, layer = handle.arch, direction.layer
    ahead = layer if direction.site in ("resid_pre", "resid_mid", "attn_out") else layer + 1
    if ahead == handle.n_layers:
        norm = arch.final_norm
        gain = torch.ones(handle.d_model).double() if norm is None else read_norm(norm).gain.double()
        last = arch.unembedding if arch.project_out is None else arch.project_out
        return [last.weight.detach().double() * gain]
    behind_attention = direction.site in ("resid_mid", "attn_out") and not arch.parallel
    parts = [] if behind_attention else [(arch.attention(ahead), arch.attn_norm(ahead))]
    parts.append((arch.mlp(ahead), arch.mlp_norm(ahead)))
    outward = arch.out_proj(ahead)
    found = []
    for module, norm in parts:
        gain = torch.ones(handle.d_model).double() if norm is None else norm.gain.double()
        for inner in module.modules():
            weight = _input_map(inner, handle.d_model)
            if weight is not None and inner is not outward:
                found.append(weight * gain)
    return found


def _input_map(module: torch.nn.Module, width: int) -> Tensor | None:
    """The weight [out, width] of a linear map from vectors of the stream's width; None for other modules."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.ndim != 2:
        return None
    stored = weight.detach().double() if isinstance(module, torch.nn.Linear) else weight.detach().double().T
    return stored if stored.shape[1] == width else None
