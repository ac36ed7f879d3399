"""The proof on opening: what latentkt reads from a model is what the model computes.

Two prompts are run. The numbers that disagree are in the refusal; the numbers that agree are in the handle's report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from latentkt.errors import ModelRefusedError, RunError
from latentkt.models.bos import check_tokens
from latentkt.models.norms import read_norm
from latentkt.models.sites import Layout, SiteAccess, record

if TYPE_CHECKING:
    from latentkt.models.handle import ModelHandle

__all__ = ["CHECK_PROMPTS", "Finding", "OpeningReport", "check_reading", "compare_logits"]

CHECK_PROMPTS = (
    "The capital of France is",
    "Answer with one word. Who wrote the play, and in which year did she not write it?",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was compared, the largest disagreement, and what is allowed.

    Attributes:
        name: The check.
        value: The largest disagreement that was found.
        tolerance: The largest that is allowed.
        unit: `relative` or `logits`.
        where: Layer and prompt of the largest disagreement.
        passed: Whether the model passes.
    """

    name: str
    value: float
    tolerance: float
    unit: str
    where: str
    passed: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.2e} ({self.unit}, at most {self.tolerance:.0e}) at {self.where}"


@dataclass(frozen=True, slots=True)
class OpeningReport:
    """What opening a model found.

    Attributes:
        findings: The numeric checks in the order in which they were made.
        facts: What is known of the model, for the card.
    """

    findings: tuple[Finding, ...]
    facts: dict[str, str] = field(default_factory=dict)

    def card(self) -> str:
        """A one-screen model card: facts and the numbers of the checks."""
        width = max(map(len, [*self.facts, *(f.name for f in self.findings)]))
        rows = [f"{key:<{width}}  {value}" for key, value in self.facts.items()]
        rows.append("")
        for f in self.findings:
            verdict = "ok" if f.passed else "DISAGREES"
            rows.append(f"{f.name:<{width}}  {f.value:9.2e}  <= {f.tolerance:.0e} {f.unit:<8}  {verdict}")
        return "\n".join(rows)


@dataclass(slots=True)
class _Worst:
    """Collects the largest disagreement of one check over prompts and layers."""

    name: str
    unit: str
    tolerance: float
    value: float = 0.0
    where: str = "-"
    passed: bool = True

    def see(self, value: float, where: str, *, also: bool = True) -> None:
        good = value <= self.tolerance and also  # NaN is never good
        if not value <= self.value:
            self.value, self.where = value, where
        self.passed = self.passed and good

    def finding(self) -> Finding:
        return Finding(self.name, self.value, self.tolerance, self.unit, self.where, self.passed)


def compare_logits(ours: Tensor, theirs: Tensor, *, relative: bool) -> tuple[float, bool]:
    """Largest disagreement of two tables of logits, and whether the last row has the same largest logit.

    Args:
        ours: Logits, `[pos, vocab]`.
        theirs: Logits of the same shape.
        relative: Divide by the largest logit where it exceeds 1. Two runs of one model with matrices of different
            shapes differ by rounding, which grows with the numbers; in half precision the logits themselves are
            spaced by more than a hundredth.
    """
    ours, theirs = ours.detach().float().cpu(), theirs.detach().float().cpu()
    gap = (ours - theirs).abs().max().item()
    if relative:
        gap /= max(theirs.abs().max().item(), 1.0)
    return gap, bool(ours[-1].argmax() == theirs[-1].argmax())


def check_reading(handle: ModelHandle, *, prompts: Sequence[str] = CHECK_PROMPTS) -> OpeningReport:
    """Prove on two prompts that the handle reads its model rightly.

    Checked: the BOS rule; every norm against its closed form, and that it stands where the sites say; attention and
    MLP contributions against the next residual; final norm, unembedding, bias and softcap against the model's own
    logits; padding on either side.

    Raises:
        ModelRefusedError: One of them fails; the message has every number that disagrees.
    """
    rows = check_tokens(handle, prompts)
    half = handle.dtype != torch.float32
    tolerance = 1e-2 if half else 1e-4
    checks = {
        "norms as read": _Worst("norms as read", "relative", tolerance),
        "sites by the norms": _Worst("sites by the norms", "relative", tolerance),
        "residual sums": _Worst("residual sums", "relative", tolerance),
        "unembedding": _Worst("unembedding", "relative" if half else "logits", tolerance),
        "padding": _Worst("padding", "relative", tolerance),
    }
    with torch.no_grad(), _refusing(handle.name):
        alone = [_check_prompt(handle, ids, checks, number, half=half) for number, ids in enumerate(rows, start=1)]
        _check_padding(handle, rows, alone, checks["padding"])
    findings = tuple(check.finding() for check in checks.values())
    failed = [finding for finding in findings if not finding.passed]
    if failed:
        raise ModelRefusedError(
            f"model {handle.name!r} is not read rightly, so nothing is measured on it",
            expected="what is read at its sites adds up to what it computes",
            found="; ".join(map(str, failed)),
            fix="open it with attn_implementation='eager' and dtype='float32'; if that does not help, the "
            f"description of its family ({handle.arch.family.name}) does not fit it",
        )
    return OpeningReport(findings, _facts(handle))


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """A site that this model never computes is a reason to refuse it."""
    try:
        yield
    except RunError as error:
        raise ModelRefusedError(
            f"model {name!r} does not compute what its family computes: {error.what}",
            expected=error.expected,
            found=error.found,
            fix="its configuration takes another way through the block; it cannot be measured",
        ) from error


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """Largest disagreement of a position's vector, relative to the length of that vector."""
    ours, theirs = ours.float().flatten(0, -2), theirs.float().flatten(0, -2)
    return ((ours - theirs).norm(dim=-1) / theirs.norm(dim=-1).clamp(min=1e-9)).max().item()


def _check_prompt(handle: ModelHandle, ids: Tensor, checks: dict[str, _Worst], number: int, *, half: bool) -> Tensor:
    """Hold one run against what is read from it; its logits are given back."""
    arch = handle.arch
    names = ["resid_pre", "resid_post", "attn_out", "mlp_out"]
    layers = range(handle.n_layers)
    accesses = [arch.site(name, layer) for layer in layers for name in names]
    norms = [norm for layer in layers for norm in _norm_accesses(handle, layer)]
    if arch.final_norm is not None:
        norms += _around("final", handle.n_layers - 1, arch.final_norm, arch.layers[-1], flat=False)
    with record([*accesses, *norms]) as seen:
        logits = handle.logits(ids)
    for layer in layers:
        where = f"layer {layer}, prompt {number}"
        pre, post = seen["resid_pre", layer], seen["resid_post", layer]
        attn, mlp = seen["attn_out", layer], seen["mlp_out", layer]
        checks["residual sums"].see(_relative(pre.float() + attn.float() + mlp.float(), post), where)
        if layer + 1 < handle.n_layers:
            checks["residual sums"].see(_relative(post, seen["resid_pre", layer + 1]), where)
        _check_norms(handle, layer, seen, checks, where)
    last = seen["resid_post", handle.n_layers - 1]
    if arch.final_norm is not None:
        _check_norm("final", handle.n_layers - 1, arch.final_norm, last, seen, checks, f"final norm, prompt {number}")
    gap, same = compare_logits(handle.unembed(last)[0], logits[0], relative=half)
    checks["unembedding"].see(gap, f"prompt {number}", also=same)
    return logits[0]


def _around(name: str, layer: int, module: nn.Module, block: nn.Module, *, flat: bool) -> list[SiteAccess]:
    """Input and output of a module, as if they were sites."""
    layout = Layout("flat") if flat else Layout()
    return [
        SiteAccess(f"{name} input", layer, "", module, "input", block, layout),
        SiteAccess(f"{name} output", layer, "", module, "output", block, layout),
    ]


def _norm_accesses(handle: ModelHandle, layer: int) -> list[SiteAccess]:
    arch, family, block = handle.arch, handle.arch.family, handle.arch.layers[layer]
    found = []
    if family.attn_norm:
        found += _around("attn_norm", layer, arch.part(layer, family.attn_norm), block, flat=False)
    if family.mlp_norm:
        found += _around("mlp_norm", layer, arch.part(layer, family.mlp_norm), block, flat=family.flat_mlp)
    if arch.post_norms:
        found += _around("attn_post", layer, arch.part(layer, family.attn_added), block, flat=False)
        found += _around("mlp_post", layer, arch.part(layer, family.mlp_added), block, flat=False)
    projection = SiteAccess("attention input", layer, "", arch.part(layer, family.qkv[0]), "input", block)
    mlp = SiteAccess(
        "mlp input", layer, "", arch.mlp(layer), "input", block, Layout("flat") if family.flat_mlp else Layout()
    )
    return [*found, projection, mlp]


def _check_norms(
    handle: ModelHandle, layer: int, seen: dict[tuple[str, int], Tensor], checks: dict[str, _Worst], where: str
) -> None:
    arch, family = handle.arch, handle.arch.family
    pre = seen["resid_pre", layer]
    mid = pre if arch.parallel else pre.float() + seen["attn_out", layer].float()
    for name, path, resid, reader in (
        ("attn_norm", family.attn_norm, pre, "attention input"),
        ("mlp_norm", family.mlp_norm, mid, "mlp input"),
    ):
        if path:
            _check_norm(name, layer, arch.part(layer, path), resid, seen, checks, where)
        normed = seen[f"{name} output", layer] if path else resid
        checks["sites by the norms"].see(_relative(normed, seen[reader, layer]), f"{reader}, {where}")
    if arch.post_norms:
        for name, path in (("attn_post", family.attn_added), ("mlp_post", family.mlp_added)):
            value = seen[f"{name} input", layer]
            _check_norm(name, layer, arch.part(layer, path), value, seen, checks, where)


def _check_norm(
    name: str,
    layer: int,
    module: nn.Module,
    resid: Tensor,
    seen: dict[tuple[str, int], Tensor],
    checks: dict[str, _Worst],
    where: str,
) -> None:
    """The norm's input is `resid`, and its output is its closed form."""
    taken, given = seen[f"{name} input", layer], seen[f"{name} output", layer]
    checks["sites by the norms"].see(_relative(resid, taken), f"{name}, {where}")
    checks["norms as read"].see(_relative(read_norm(module)(taken), given), f"{name}, {where}")


def _check_padding(handle: ModelHandle, rows: list[Tensor], alone: list[Tensor], check: _Worst) -> None:
    """All prompts in one batch, padded left, then right, with three more columns than needed, against each alone."""
    width = max(row.shape[1] for row in rows) + 3
    pad = handle.tokenizer.pad_token_id
    fill = pad if pad is not None and 0 <= pad < handle.vocab_size else 0
    for side in ("left", "right"):
        ids = torch.full((len(rows), width), fill, device=handle.device)
        mask = torch.zeros_like(ids)
        places = []
        for number, row in enumerate(rows):
            n = row.shape[1]
            place = slice(width - n, width) if side == "left" else slice(0, n)
            ids[number, place], mask[number, place] = row[0], 1
            places.append(place)
        logits = handle.logits(ids, mask)
        for number, place in enumerate(places):
            gap, same = compare_logits(logits[number, place], alone[number], relative=True)
            check.see(gap, f"{side} padding, prompt {number + 1}", also=same)


def _facts(handle: ModelHandle) -> dict[str, str]:
    arch = handle.arch
    n_parameters = sum(p.numel() for p in handle.model.parameters())
    heads = f"{handle.n_heads} query, {handle.n_kv_heads} key/value, width {handle.d_head}"
    bos = handle.tokenizer.bos_token
    shape = "parallel" if arch.parallel else "sequential"
    return {
        "model": handle.name,
        "class": f"{type(handle.model).__name__} (family {arch.family.name}), {n_parameters / 1e6:.1f} M parameters",
        "layers": f"{handle.n_layers}, width {handle.d_model}, {shape}" + (", post-norms" if arch.post_norms else ""),
        "heads": heads,
        "vocabulary": f"{handle.vocab_size}, context {handle.n_ctx or 'not bounded'}",
        "softcap": "none" if arch.softcap is None else f"{arch.softcap:g}",
        "tokens": f"BOS {bos!r}, chat template {'yes' if handle.has_chat_template else 'no'}",
        "runs as": f"{str(handle.dtype).removeprefix('torch.')}, {handle.attn_implementation}, {handle.device}",
        "sites": ", ".join(arch.sites),
    }
