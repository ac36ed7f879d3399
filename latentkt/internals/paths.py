"""Path patching: what one part does to the answer through chosen receivers, and through nothing else.

Two runs a sender (Wang et al. 2023; Goldowsky-Dill et al. 2023). In the first the sender has the source run's value,
and every attention and MLP output behind it is held at the base run's (`others="frozen"`) or computed anew (`"live"`);
what reaches the receivers is kept. In the second, only the receivers get what was kept, and the answer is scored.

A receiver reads the residual stream through a norm. `norm="frozen"` divides what it reads by the base run's scale, so
that what several senders send adds up; `"recomputed"` lets the norm do what it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch

from latentkt.errors import InputError
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Cell, Edit, Engine, Patch, Replace, SiteKey
from latentkt.internals.metrics import AnswerScore, Metric, Scorer, metric_name, scorer_of
from latentkt.internals.places import Place, role_positions
from latentkt.models.devices import naming_out_of_memory
from latentkt.models.norms import NormReading, read_norm
from latentkt.models.sites import SiteAccess, attached

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

    from latentkt.models import ModelHandle, Pair

__all__ = ["LOGITS", "Node", "Wires", "path_patch"]

SENDERS = ("resid_pre", "z", "attn_out", "mlp_out")
RECEIVERS = ("q", "k", "v", "mlp_out")


class Node(NamedTuple):
    """One part of the network.

    Attributes:
        site: A sender is `z`, `attn_out`, `mlp_out` or the embedding (`resid_pre` of layer 0); a receiver `q`, `k`,
            `v`, `mlp_out` (its input is what changes), or `logits`.
        layer: Its layer.
        head: A head of z, q, k (n_kv heads) or v; None for all.
    """

    site: str
    layer: int
    head: int | None = None

    @property
    def name(self) -> str:
        """`z.3.1`, say."""
        return f"{self.site}.{self.layer}" + ("" if self.head is None else f".{self.head}")


LOGITS = Node("logits", -1)
"""The read-out as a receiver: the direct path from a sender to the answer's first differing token."""


@naming_out_of_memory("path patching", fix="shorten the prompts, or use a smaller model or dtype")
def path_patch(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    *,
    senders: Sequence[Node],
    receivers: Sequence[Node] = (LOGITS,),
    role: str = "all",
    norm: str = "recomputed",
    others: str = "frozen",
    metric: str | Metric | None = "first_token",
    engine: str = "fast",
) -> pd.DataFrame:
    """Effect of each sender on the answer through a set of receivers.

    Args:
        model: An opened model, or an engine.
        pairs: Base and source runs.
        senders: Parts whose source value is sent, one row each.
        receivers: Parts that get it, together. `LOGITS` cannot stand beside others.
        role: Tokens at which the sender has the source's value.
        norm: Scale of the norm in front of the receivers (the final norm for `LOGITS`): `frozen` at the base run's, or
            `recomputed`. A receiver that reads the bare residual stream has none to freeze.
        others: `frozen` or `live`: parts between sender and receivers.
        metric: As in `patch`; with `LOGITS` it is read at the last prompt token, so answers must differ in their first
            token.
        engine: Which engine runs the model.

    Returns:
        One row a pair and sender: `pair`, the pair's `meta`, `sender`, `receivers`, `role`, `norm`, `others`, `metric`,
        `dtype`, `base_value`, `patched_value`, `effect` (nats).

    Raises:
        InputError: A part that cannot send or receive, a receiver in front of every sender, a shifted pair.

    Example:
        >>> from latentkt.internals import Node, pairs_of_item, path_patch
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> options = {"senders": [Node("z", 25), Node("z", 28)], "receivers": [Node("mlp_out", 29)]}
        >>> table = path_patch(handle, pairs_of_item(handle, item)[:1], **options)
        >>> table[["sender", "receivers"]].to_numpy().tolist()
        [['z.25', 'mlp_out.29'], ['z.28', 'mlp_out.29']]
    """
    import pandas as pd

    runner = engine_of(model, engine)
    _refuse(runner, senders, receivers, norm, others)
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted:
            raise InputError(f"pair {pair.name!r} is shifted", fix="leave it out and count it")
        if LOGITS in receivers and pair.answers.first_difference:
            raise InputError(f"the answers of pair {pair.name!r} begin alike", expected="other first tokens for LOGITS")
        scorer, place = scorer_of(pair, pair.base.ids, metric), role_positions(pair, role)
        base = runner.score(scorer)
        wires = Wires(runner, pair, place, senders, receivers)
        for sender in senders:
            kept = wires.send(sender, norm=norm, others=others)
            if LOGITS in receivers:
                patched = wires.direct(scorer, kept, norm)
            else:
                patched = runner.sweep(scorer, [wires.cell(kept, receivers)])[0]
            rows.append(
                {
                    "pair": pair.name,
                    **pair.meta,
                    "sender": sender.name,
                    "receivers": " ".join(node.name for node in receivers),
                    "role": role,
                    "norm": norm,
                    "others": others,
                    "metric": metric_name(scorer.metric),
                    "dtype": runner.handle.dtype_name,
                    "base_value": base.value,
                    "patched_value": patched.value,
                    "effect": patched.value - base.value,
                }
            )
    return pd.DataFrame(rows)


def _refuse(engine: Engine, senders: Sequence[Node], receivers: Sequence[Node], norm: str, others: str) -> None:
    for node in senders:
        if node.site not in SENDERS:
            raise InputError(f"site {node.site!r} cannot send", expected=", ".join(SENDERS))
        engine.handle.arch.site(node.site, node.layer)
        if node.site == "resid_pre" and node.layer:
            raise InputError(f"{node.name} cannot send: it is a sum of parts", expected="resid_pre of layer 0")
    inside = [node for node in receivers if node != LOGITS]
    for node in inside:
        if node.site not in RECEIVERS:
            raise InputError(f"site {node.site!r} cannot receive", expected=", ".join((*RECEIVERS, "logits")))
        engine.handle.arch.site(node.site, node.layer)
    if not receivers or (inside and LOGITS in receivers):
        raise InputError("receivers", expected="parts inside the network, or LOGITS alone", found=list(receivers))
    late = [sender.name for sender in senders if inside and all(not _behind(sender, node) for node in inside)]
    if late:
        raise InputError("a sender has no receiver behind it", expected="receivers in later parts", found=late)
    if norm not in ("frozen", "recomputed") or others not in ("frozen", "live"):
        raise InputError("norm and others", expected="frozen or recomputed; frozen or live", found=f"{norm}, {others}")


def _behind(sender: Node, receiver: Node) -> bool:
    """Whether a receiver reads what a sender wrote."""
    if receiver.layer != sender.layer or sender.site == "resid_pre":
        return receiver.layer >= sender.layer
    return sender.site in ("z", "attn_out") and receiver.site == "mlp_out"


class Wires:
    """The base run's values, the source's, and both runs of a sender.

    Args:
        engine: What runs the model.
        pair: The pair.
        place: Tokens at which senders have the source's values.
        senders: All that will be sent.
        receivers: All that will receive.
        known: Values of the base and the source run by (site, layer), where they have been run already.
    """

    def __init__(
        self,
        engine: Engine,
        pair: Pair,
        place: Place,
        senders: Sequence[Node],
        receivers: Sequence[Node],
        *,
        known: tuple[dict[SiteKey, Tensor], dict[SiteKey, Tensor]] | None = None,
    ) -> None:
        self._engine, self._pair, self._place, self._receivers = engine, pair, place, receivers
        n_layers = engine.handle.n_layers
        self._last: SiteKey = ("resid_post", n_layers - 1)
        outputs = [(site, layer) for site in ("attn_out", "mlp_out") for layer in range(n_layers)]
        held, sent = [*outputs, self._last], [(node.site, node.layer) for node in senders]
        base, self._source = known or (engine.values(pair.base.ids, held), engine.values(pair.source.ids, sent))
        self._base = {key: base[key] for key in held}

    def send(self, sender: Node, *, norm: str, others: str) -> dict[SiteKey, Tensor]:
        """What reaches the receivers when the sender has the source's value."""
        inside = {(node.site, node.layer) for node in self._receivers if node != LOGITS}
        if not inside or norm == "recomputed":
            return self._run(sender, inside | ({self._last} if LOGITS in self._receivers else set()), others)
        read = {key: self._read(key) for key in inside}
        kept = self._run(sender, set(read.values()), others)
        return {key: self._through_frozen_norm(key, place, kept[place]) for key, place in read.items()}

    def _run(self, sender: Node, wanted: set[SiteKey], others: str) -> dict[SiteKey, Tensor]:
        """Values of sites when the sender has the source's value."""
        key = (sender.site, sender.layer)
        values = self._source[key][list(self._place.source)]
        values = values if sender.head is None else values[:, sender.head]
        edits: dict[SiteKey, Edit] = {key: Replace(self._place.base, values, sender.head)}
        kept: dict[SiteKey, Tensor] = {}
        if others == "frozen":
            for site, layer in self._base:
                if site != "resid_post" and _behind(sender, Node(site, layer)):
                    edits[site, layer] = _Hold(self._base[site, layer])
        for at in wanted:
            edits[at] = _Keep(kept, at, edits.get(at))
        self._engine.run(torch.tensor([self._pair.base.ids]), edits=edits)
        return kept

    def _read(self, receiver: SiteKey) -> SiteKey:
        """The residual stream that a receiver reads."""
        behind_attention = receiver[0] == "mlp_out" and not self._engine.handle.arch.parallel
        return ("resid_mid" if behind_attention else "resid_pre", receiver[1])

    def _through_frozen_norm(self, receiver: SiteKey, place: SiteKey, resid: Tensor) -> Tensor:
        """The receiver's value when its norm divides `resid` by the scale of the base run's residual stream.

        The Hugging Face modules of its layer make it, whatever the engine: an engine has no site inside a norm.
        """
        arch, family, layer = self._engine.handle.arch, self._engine.handle.arch.family, receiver[1]
        path = family.mlp_norm if receiver[0] == "mlp_out" else family.attn_norm
        ids = self._pair.base.ids
        kept: dict[SiteKey, Tensor] = {}
        base = self._engine.values(ids, [place])[place]
        edits: list[tuple[SiteAccess, Edit]] = [(arch.site(*place), _Hold(resid[0]))]
        edits.append((arch.site(*receiver), _Keep(kept, receiver, None)))
        frozen = nullcontext() if path is None else _frozen_norm(arch.part(layer, path), base)
        with torch.no_grad(), attached(edits), frozen:
            self._engine.handle.run_blocks(torch.tensor([ids]))
        return kept[receiver]

    def cell(self, kept: dict[SiteKey, Tensor], receivers: Sequence[Node]) -> Cell:
        """The patch that gives receivers inside the network what was kept."""
        positions = tuple(range(len(self._pair.base.ids)))
        cell = []
        for node in receivers:
            values = kept[node.site, node.layer][0]
            values = values if node.head is None else values[:, node.head]
            cell.append(Patch(node.site, node.layer, positions, values, node.head))
        return tuple(cell)

    def direct(self, scorer: Scorer, kept: dict[SiteKey, Tensor], norm: str) -> AnswerScore:
        """Score the read-out of what was kept at the last prompt token."""
        handle = self._engine.handle
        resid, base = kept[self._last][0, -1], self._base[self._last][-1]
        with torch.inference_mode():
            logits = handle.unembed(self._engine.readers(scorer)[-1])
            frozen = norm == "frozen" and handle.arch.final_norm is not None
            logits[0] = _read_with_scale_of(handle, resid, base) if frozen else handle.unembed(resid)
            return scorer.from_logits(logits[None])[0]


def _read_with_scale_of(handle: ModelHandle, resid: Tensor, base: Tensor) -> Tensor:
    """The logits of `resid` when the final norm divides it by the scale of `base`."""
    arch = handle.arch
    normed = _norm_with_scale_of(read_norm(arch.final_norm), resid, base)
    logits = arch.unembedding(normed if arch.project_out is None else arch.project_out(normed))
    return (logits if arch.softcap is None else arch.softcap * torch.tanh(logits / arch.softcap)).float()


def _norm_with_scale_of(reading: NormReading, resid: Tensor, base: Tensor) -> Tensor:
    """`resid` normed, but divided by the scale of `base`."""
    centred = resid.float() - resid.float().mean(-1, keepdim=True) if reading.centred else resid.float()
    normed = reading.gain * centred / reading.scale(base)
    return (normed if reading.bias is None else normed + reading.bias).to(resid.dtype)


@contextmanager
def _frozen_norm(module: nn.Module, base: Tensor) -> Iterator[None]:
    """A norm module that divides by the scale of `base` for the length of a `with` block."""
    reading = read_norm(module)
    hook = module.register_forward_hook(lambda _, args, __: _norm_with_scale_of(reading, args[0], base))
    try:
        yield
    finally:
        hook.remove()


class _Hold:
    """An edit that puts the base run's value back."""

    def __init__(self, value: Tensor) -> None:
        self._value = value

    def __call__(self, value: Tensor) -> Tensor:
        return self._value[None].expand_as(value).to(value)


class _Keep:
    """An edit that notes a value before another edit, if any, is applied."""

    def __init__(self, kept: dict[SiteKey, Tensor], key: SiteKey, then: Edit | None) -> None:
        self._kept, self._key, self._then = kept, key, then

    def __call__(self, value: Tensor) -> Tensor:
        self._kept[self._key] = value.detach()
        return value if self._then is None else self._then(value)
