"""Sites: named places in a model, how to read them and how to replace them.

| site | what it is |
|---|---|
| `resid_pre` | the residual stream that enters the block, before any norm |
| `resid_mid` | `resid_pre + attn_out`, before the norm of the MLP; not in parallel blocks |
| `resid_post` | the residual stream that leaves the block, before any norm |
| `attn_out`, `mlp_out` | what is ADDED to the residual stream, after a post-norm where there is one |
| `z` | output of each head, input of the output projection |
| `q`, `k`, `v` | after the norm, the projection and its bias; before rotary and before a q- or k-norm |
| `pattern` | attention probabilities, query by key; read only, eager attention only |

Residual sites, `attn_out` and `mlp_out` have shape `[batch, pos, d_model]`; `z`, `q`, `k` and `v`
`[batch, pos, heads, d_head]`; `pattern` `[batch, n_heads, query, key]`.
`k` and `v` have `n_kv_heads` heads: query head h reads key/value head `h // (n_heads // n_kv_heads)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from latentkt.errors import RunError

__all__ = ["SITES", "Edit", "Layout", "SiteAccess", "attached", "record"]

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v", "pattern")

Edit = Callable[[Tensor], "Tensor | None"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a site's value lies in the tensor that a module takes or gives.

    Attributes:
        kind: `whole` the tensor itself; `flat` tokens as rows; `heads` a range of columns, head by head;
            `interleaved` columns ordered [head, (q, k, v), d_head].
        heads: Number of heads of the site.
        d_head: Width of a head.
        start: First column (`heads`), or 0, 1, 2 for q, k, v (`interleaved`).
    """

    kind: Literal["whole", "flat", "heads", "interleaved"] = "whole"
    heads: int = 0
    d_head: int = 0
    start: int = 0

    def read(self, raw: Tensor, *, batch: int) -> Tensor:
        """The site's value in `raw`, without a copy where there need be none."""
        if self.kind == "whole":
            return raw
        if self.kind == "flat":
            return raw.reshape(batch, -1, raw.shape[-1])
        if self.kind == "interleaved":
            return raw.unflatten(-1, (self.heads, 3, self.d_head))[..., self.start, :]
        columns = raw[..., self.start : self.start + self.heads * self.d_head]
        return columns.unflatten(-1, (self.heads, self.d_head))

    def write(self, raw: Tensor, value: Tensor) -> Tensor:
        """`raw` with the site's value replaced; `raw` itself is left alone and gradients pass through."""
        value = value.to(raw.dtype)
        if self.kind in {"whole", "flat"}:
            return value.reshape(raw.shape)
        out = raw.clone()
        if self.kind == "interleaved":
            out.unflatten(-1, (self.heads, 3, self.d_head))[..., self.start, :] = value
        else:
            out[..., self.start : self.start + self.heads * self.d_head] = value.flatten(-2)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class SiteAccess:
    """Where one site of one layer is found, and how it is read and replaced.

    Attributes:
        name: The site, one of `SITES`.
        layer: The layer, from 0.
        place: Where it stands relative to the norms, in words.
        module: The module whose input or output holds it.
        kind: `input` or `output` of that module.
        index: Its place where the module gives a tuple.
        layout: How it lies in that tensor.
        block: The block it belongs to.
        on_residual: The value is the tensor plus the block's input (`resid_mid`).
        writable: Whether it can be replaced.
    """

    name: str
    layer: int
    place: str
    module: nn.Module
    kind: Literal["input", "output"]
    block: nn.Module
    layout: Layout = Layout()
    index: int = 0
    on_residual: bool = False
    writable: bool = True

    def attach(self, edit: Edit) -> list[Any]:
        """Call `edit(value)` whenever the site is computed; a tensor that it returns replaces the value.

        The caller removes the handles that are returned; `attached` does so by itself.
        """
        context: dict[str, Tensor] = {}

        def change(raw: Tensor) -> Tensor | None:
            resid = context["resid_pre"] if self.on_residual else None
            batch = context["resid_pre"].shape[0] if self._needs_block else raw.shape[0]
            value = self.layout.read(raw, batch=batch)
            new = edit(value if resid is None else value + resid)
            if new is None:
                return None
            if not self.writable:
                raise RunError(
                    f"site {self.name!r} of layer {self.layer} cannot be replaced", expected="an edit that returns None"
                )
            return self.layout.write(raw, new if resid is None else new - resid)

        handles = []
        if self._needs_block:

            def note(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                context["resid_pre"] = args[0] if args else kwargs["hidden_states"]

            handles.append(self.block.register_forward_pre_hook(note, with_kwargs=True))
        handles.append(self._register(change))
        return handles

    @property
    def _needs_block(self) -> bool:
        return self.on_residual or self.layout.kind == "flat"

    def _register(self, change: Edit) -> Any:
        if self.kind == "input":

            def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
                new = change(args[0] if args else kwargs["hidden_states"])
                if new is None:
                    return None
                return ((new, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": new})

            return self.module.register_forward_pre_hook(before, with_kwargs=True)

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
            if not isinstance(output, tuple):
                return change(output)
            new = change(output[self.index])
            return None if new is None else (*output[: self.index], new, *output[self.index + 1 :])

        return self.module.register_forward_hook(after)


@contextmanager
def attached(edits: Iterable[tuple[SiteAccess, Edit]]) -> Iterator[None]:
    """Hold edits at sites for the length of a `with` block; only these hooks are removed, also after an error.

    Raises:
        RunError: On leaving without an error, a site was never computed: its edit would have changed nothing.
    """
    fired: set[int] = set()
    handles: list[Any] = []
    # A change of resid_pre comes first: resid_mid and attn_out of the same layer see it.
    wanted = sorted(edits, key=lambda pair: pair[0].name != "resid_pre")

    def watch(number: int, edit: Edit) -> Edit:
        def watched(value: Tensor) -> Tensor | None:
            fired.add(number)
            return edit(value)

        return watched

    try:
        for number, (access, edit) in enumerate(wanted):
            handles += access.attach(watch(number, edit))
        yield
    finally:
        for handle in handles:
            handle.remove()
    silent = [f"{access.name}.{access.layer}" for n, (access, _) in enumerate(wanted) if n not in fired]
    if silent:
        raise RunError("sites were attached but never computed", expected="each site once a run", found=silent)


@contextmanager
def record(accesses: Iterable[SiteAccess]) -> Iterator[dict[tuple[str, int], Tensor]]:
    """Keep the values of sites that are computed in a `with` block, by (site, layer).

    Values keep their graph; run the model under `torch.no_grad()` where no gradient is wanted.
    """
    values: dict[tuple[str, int], Tensor] = {}

    def keep(access: SiteAccess) -> Edit:
        def edit(value: Tensor) -> None:
            values[access.name, access.layer] = value

        return edit

    with attached((access, keep(access)) for access in accesses):
        yield values
