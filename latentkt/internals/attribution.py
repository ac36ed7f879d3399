"""Direct logit attribution: what each part of the network adds to logit(y*) − logit(y_s), and head by head from where.

The residual stream that is read is a sum: embedding, heads, attention biases, MLPs. The final norm is linear once its
scale is fixed, so the difference of two logits before the softcap is a sum of one number a part; a norm's bias and the
unembedding's bias are rows of their own, and the softcap, which is not linear, closes the sum with a remainder. The
rows add up to the model's own difference; how nearly is in the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from latentkt.errors import InputError, RunError
from latentkt.internals.engines import engine_of
from latentkt.models.devices import naming_out_of_memory
from latentkt.models.norms import read_norm

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Engine, SiteKey
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle

__all__ = ["attribute", "head_table"]

NORMS = ("frozen", "recomputed")
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class _Readout:
    """The linear map from the residual stream at one position to logit(y*) − logit(y_s), softcap aside.

    Attributes:
        handle: The model.
        final: The residual stream that is read.
        tokens: Ids of the two tokens.
        logits: The model's own logits of both.
    """

    handle: ModelHandle
    final: Float[Tensor, "d_model"]
    tokens: tuple[int, int]
    logits: Float[Tensor, "2"]

    @property
    def difference(self) -> float:
        """The model's own difference."""
        return float(self.logits[0] - self.logits[1])

    @property
    def direction(self) -> Float[Tensor, "d_model"]:
        """Weight of the residual stream, before it is divided by the norm's scale."""
        arch = self.handle.arch
        weight = arch.unembedding.weight.double()
        direction = weight[self.tokens[0]] - weight[self.tokens[1]]
        if arch.project_out is not None:
            direction = direction @ arch.project_out.weight.double()
        if arch.final_norm is None:
            return direction
        norm = read_norm(arch.final_norm)
        direction = direction * norm.gain.double()
        return direction - direction.mean() if norm.centred else direction

    def scale(self, resid: Tensor) -> Tensor:
        """What the final norm divides each vector by; 1 without a norm."""
        norm = self.handle.arch.final_norm
        return torch.ones(()) if norm is None else read_norm(norm).scale(resid)[..., 0].double()

    def biases(self) -> dict[str, float]:
        """What the final norm's bias and the unembedding's add."""
        arch, rows = self.handle.arch, {}
        norm = None if arch.final_norm is None else read_norm(arch.final_norm)
        if norm is not None and norm.bias is not None:
            weight = arch.unembedding.weight.double()
            bias = norm.bias.double()
            if arch.project_out is not None:
                bias = arch.project_out.weight.double() @ bias
            rows["norm_bias"] = float((weight[self.tokens[0]] - weight[self.tokens[1]]) @ bias)
        bias = getattr(arch.unembedding, "bias", None)
        if bias is not None:
            rows["unembedding_bias"] = float(bias[self.tokens[0]] - bias[self.tokens[1]])
        return rows

    def softcap(self) -> dict[str, float]:
        """Capped difference minus difference before the cap; no row without a cap."""
        cap = self.handle.arch.softcap
        if cap is None:
            return {}
        before = cap * torch.atanh((self.logits.double() / cap).clamp(-1 + 1e-12, 1 - 1e-12))
        return {"softcap_remainder": self.difference - float(before[0] - before[1])}


@naming_out_of_memory("attribution", fix="shorten the prompts, or use a smaller model or dtype")
def attribute(
    model: ModelHandle | Engine, runs: Iterable[LensRun], *, norm: str = "frozen", engine: str = "fast"
) -> pd.DataFrame:
    """What each part adds to logit(y*) − logit(y_s), at the first token in which the answers differ.

    It is read at the token before that one: the last prompt token, or the last token of the answers' common beginning.

    Args:
        model: An opened model, or an engine.
        runs: Prompts with their answers.
        norm: `frozen`: every part is divided by the scale of the whole residual stream, so parts add up by themselves.
            `recomputed`: a part's number is what the difference loses when the part is taken out and the norm's scale
            is computed anew; a row `norm_remainder` closes the sum.
        engine: Which engine runs the model.

    Returns:
        One row a run and part: the run's `meta`, `component` (`embedding`, `head`, `attention_bias`, `mlp`,
        `norm_bias`, `unembedding_bias`, `softcap_remainder`, `norm_remainder`), `layer` and `head` (−1 where the part
        has none), `contribution` (nats), `norm`, `dtype` (the weights'), `difference` (the model's own),
        `completeness_error` (nats: rows of the run summed, minus `difference`).

    Raises:
        InputError: `norm` is unknown.
        RunError: The rows do not add up.

    Example:
        >>> from latentkt.internals import attribute, item_run
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> table = attribute(handle, [item_run(handle, item)])
        >>> print(table.groupby("component")["contribution"].sum().loc[["embedding", "head", "mlp"]].round(1))
        component
        embedding   -0.1
        head        -2.8
        mlp          2.1
        Name: contribution, dtype: float64
        >>> bool(abs(table["contribution"].sum() - table["difference"].iloc[0]) < 1e-4)
        True
    """
    import pandas as pd

    if norm not in NORMS:
        raise InputError("norm of the attribution", expected=" or ".join(NORMS), found=norm)
    runner = engine_of(model, engine)
    rows: list[dict[str, object]] = []
    for run in runs:
        with torch.no_grad():
            rows.extend(_run_rows(runner, run, norm))
    return pd.DataFrame(rows)


def _run_rows(engine: Engine, run: LensRun, norm: str) -> list[dict[str, object]]:
    handle = engine.handle
    layers = range(handle.n_layers)
    keys = [("resid_pre", 0), ("resid_post", handle.n_layers - 1)]
    keys += [(site, layer) for layer in layers for site in ("z", "attn_out", "mlp_out")]
    values, readout = _read(engine, run, keys)
    names: list[tuple[str, int, int]] = [("embedding", -1, -1)]
    vectors = [values["resid_pre", 0][-1].double()]
    for layer in layers:
        heads, bias = head_writes(handle, layer, values["z", layer][-1], values["attn_out", layer][-1])
        names += [("head", layer, head) for head in range(len(heads))]
        names += [("attention_bias", layer, -1), ("mlp", layer, -1)]
        vectors += [*heads, bias, values["mlp_out", layer][-1].double()]
    parts = torch.stack(vectors)
    direction, scale = readout.direction, readout.scale(readout.final)
    numbers = parts @ direction / scale
    extra = {**readout.biases(), **readout.softcap()}
    if norm == "recomputed":
        whole = readout.final.double()
        left = (whole - parts) @ direction / readout.scale(whole - parts)
        numbers, frozen = whole @ direction / scale - left, numbers
        extra["norm_remainder"] = float(frozen.sum() - numbers.sum())
    total = float(numbers.sum()) + sum(extra.values())
    error = total - readout.difference
    if abs(error) > _TOLERANCE * max(1.0, float(numbers.abs().sum())) * (1 if handle.dtype == torch.float32 else 100):
        raise RunError(
            "the attribution does not add up", expected=f"{readout.difference:.4f} nat", found=f"{total:.4f} nat"
        )
    fixed = {"norm": norm, "dtype": handle.dtype_name, "difference": readout.difference, "completeness_error": error}
    named = [*zip(names, numbers.tolist(), strict=True), *(((name, -1, -1), x) for name, x in extra.items())]
    return [
        {**run.meta, "component": name, "layer": layer, "head": head, "contribution": number, **fixed}
        for (name, layer, head), number in named
    ]


def _read(engine: Engine, run: LensRun, keys: list[SiteKey]) -> tuple[dict[SiteKey, Tensor], _Readout]:
    """Values on the prompt with the answers' common beginning, and the read-out at its last token."""
    at = run.answers.first_difference
    ids = torch.tensor([[*run.prompt.ids, *run.answers.correct_ids[:at]]])
    found = engine.run(ids, capture=keys)
    tokens = (run.answers.correct_ids[at], run.answers.shortcut_ids[at])
    values = {key: value[0] for key, value in found.activations.items()}
    final = values["resid_post", engine.handle.n_layers - 1][-1].float()
    return values, _Readout(engine.handle, final, tokens, found.logits[0, -1, list(tokens)])


def head_writes(
    handle: ModelHandle,
    layer: int,
    z: Float[Tensor, "*batch n_heads d_head"],
    attn_out: Float[Tensor, "*batch d_model"],
) -> tuple[Float[Tensor, "*batch n_heads d_model"], Float[Tensor, "*batch d_model"]]:
    """What each head adds to the residual stream, and what attention adds besides (its biases).

    After a post-norm, its scale is that of attention's whole output.
    """
    writes = torch.einsum("...hd,hdm->...hm", z.double(), handle.arch.out_weight(layer).double())
    bias = getattr(handle.arch.out_proj(layer), "bias", None)
    whole = writes.sum(-2, keepdim=True) + (0 if bias is None else bias.double())
    writes = _post_normed(handle, layer, writes, whole)
    return writes, attn_out.double() - writes.sum(-2)


def _post_normed(handle: ModelHandle, layer: int, parts: Tensor, whole: Tensor) -> Tensor:
    """Parts of attention's output after its post-norm, whose scale is that of the whole; unchanged without one."""
    if not handle.arch.post_norms:
        return parts
    norm = read_norm(handle.arch.part(layer, handle.arch.family.attn_added))
    parts = parts - parts.mean(-1, keepdim=True) if norm.centred else parts
    return parts * norm.gain.double() / norm.scale(whole.float()).double()


@naming_out_of_memory("the head table", fix="shorten the prompts, or use a smaller model or dtype")
def head_table(model: ModelHandle | Engine, runs: Iterable[LensRun], *, engine: str = "fast") -> pd.DataFrame:
    """Each head: how much it attends from the reading token to each role, and what that adds to logit(y*) − logit(y_s).

    contribution = attention × ov_effect: what one unit of attention to the role's tokens would add (their value vectors
    through the output projection, the norms with their scales frozen, and the unembedding), times the attention that
    they get. Over the roles of a head the contributions add up to its direct effect, the head's row in `attribute`.

    Args:
        model: An opened model, or an engine; attention must be eager.
        runs: Prompts with their answers.
        engine: Which engine runs the model.

    Returns:
        One row a run, layer, head and role: the run's `meta`, `layer`, `head`, `role` (`answer_prefix` for tokens of
        the answers' common beginning), `attention` (share, roles of a head sum to 1), `ov_effect` (nats; NaN where
        attention is 0), `contribution` (nats), `direct_effect` (nats, the same in all rows of a head), `difference`,
        `dtype`.

    Raises:
        InputError: Attention is not eager, so there is no pattern.

    Example:
        >>> from latentkt.internals import head_table, item_run
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> largest = head_table(handle, [item_run(handle, item)]).nlargest(2, "contribution")
        >>> largest[["layer", "head", "role"]].to_numpy().tolist()
        [[23, 1, 'option_correct'], [23, 7, 'option_correct']]
    """
    import pandas as pd

    runner = engine_of(model, engine)
    rows: list[dict[str, object]] = []
    for run in runs:
        with torch.no_grad():
            rows.extend(_head_rows(runner, run))
    return pd.DataFrame(rows)


def _head_rows(engine: Engine, run: LensRun) -> list[dict[str, object]]:
    handle = engine.handle
    layers = range(handle.n_layers)
    keys = [("resid_post", handle.n_layers - 1)]
    keys += [(site, layer) for layer in layers for site in ("pattern", "v", "z", "attn_out")]
    values, readout = _read(engine, run, keys)
    direction = readout.direction / readout.scale(readout.final)
    n_prefix = run.answers.first_difference
    roles = [*run.prompt.roles, *["answer_prefix"] * n_prefix]
    rows: list[dict[str, object]] = []
    for layer in layers:
        pattern = values["pattern", layer][:, -1].double()  # [head, key]
        heads, _ = head_writes(handle, layer, values["z", layer][-1], values["attn_out", layer][-1])
        direct = heads @ direction
        to_residual = _head_directions(handle, layer, values["z", layer][-1], direction)
        per_key = torch.einsum("khd,hd->hk", _values_by_head(handle, values["v", layer]), to_residual)
        for role in dict.fromkeys(roles):
            inside = torch.tensor([one == role for one in roles], device=pattern.device)
            attention = pattern[:, inside].sum(-1)
            added = (pattern * per_key)[:, inside].sum(-1)
            for head in range(handle.n_heads):
                share, nats = float(attention[head]), float(added[head])
                place = {"layer": layer, "head": head, "role": role, "attention": share}
                numbers = {"ov_effect": nats / share if share > 0 else float("nan"), "contribution": nats}
                whole = {"direct_effect": float(direct[head]), "difference": readout.difference}
                rows.append({**run.meta, **place, **numbers, **whole, "dtype": handle.dtype_name})
    return rows


def _values_by_head(handle: ModelHandle, v: Float[Tensor, "key n_kv d_head"]) -> Float[Tensor, "key n_heads d_head"]:
    return v.double().repeat_interleave(handle.n_heads // handle.n_kv_heads, dim=1)


def _head_directions(
    handle: ModelHandle, layer: int, z: Float[Tensor, "n_heads d_head"], direction: Float[Tensor, "d_model"]
) -> Float[Tensor, "n_heads d_head"]:
    """For each head, the direction of its own output that adds to the difference."""
    weight = handle.arch.out_weight(layer).double()
    bias = getattr(handle.arch.out_proj(layer), "bias", None)
    whole = torch.einsum("hd,hdm->m", z.double(), weight) + (0 if bias is None else bias.double())
    return _post_normed(handle, layer, weight, whole) @ direction
