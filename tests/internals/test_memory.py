"""Memory: the limit bounds what is held, what cannot fit is refused before work, and running out is a clear error."""

from __future__ import annotations

import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals import (
    answer_lens,
    attribute,
    collect,
    engine_of,
    generate,
    growing,
    head_table,
    patch_positions,
    path_patch,
    token_lens,
    train_tuned_lens,
)
from latentkt.internals import replay as replaying
from latentkt.internals.budget import Budget
from latentkt.internals.engines.base import Patch
from latentkt.internals.growing import grow
from latentkt.internals.lens import LensRun
from latentkt.internals.metrics import scorer_of
from latentkt.internals.paths import Node
from latentkt.models import attached
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle


def tokens_a_call(handle, work):
    """The most tokens that one call of a layer is given."""
    seen = []

    def watch(module, args, kwargs):
        hidden = args[0] if args else kwargs["hidden_states"]
        seen.append(hidden.shape[0] * hidden.shape[1])

    hooks = [layer.register_forward_pre_hook(watch, with_kwargs=True) for layer in handle.arch.layers]
    try:
        work()
    finally:
        for hook in hooks:
            hook.remove()
    return max(seen)


def rows_a_block(monkeypatch, work):
    """The most rows that one lean block is given."""
    seen, block = [], replaying.lean_block

    def watch(layer, rows, spans):
        seen.append(len(rows))
        return block(layer, rows, spans)

    for module in (replaying, growing):
        monkeypatch.setattr(module, "lean_block", watch)
    work()
    return max(seen)


@pytest.mark.parametrize("site", ["resid_post", "mlp_out", "k"])
def test_the_limit_sizes_the_batches(site):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    n = len(pair.base.ids)
    options = {"sites": (site,), "skip_unchanged": False, "check": False}
    large, small = engine_of(handle), engine_of(handle, memory_mb=0.3)
    most = [
        tokens_a_call(handle, lambda engine=engine: patch_positions(engine, [pair], **options))
        for engine in (small, large)
    ]
    assert most[0] <= max(small._budget.chunk_tokens, n) < most[1]


@pytest.mark.parametrize("more", [{}, {"sites": ("z",), "heads": True}], ids=["stream", "heads"])
def test_the_limit_sizes_the_batches_of_lean_blocks(more, monkeypatch):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    engine = engine_of(handle, memory_mb=0.3)
    options = {"skip_unchanged": False, "check": False, "metric": "first_token", **more}
    most = [rows_a_block(monkeypatch, lambda one=one: patch_positions(one, [pair], **options))
            for one in (engine, engine_of(handle))]  # fmt: skip
    assert most[0] <= engine._budget.chunk_tokens < most[1]


def test_plain_runs_at_the_head_of_a_part_are_counted_to_it(monkeypatch):
    handle = tiny_handle("llama")
    pair, engine = tiny_pair(handle), engine_of(handle)
    n = len(grow(handle, [scorer_of(pair, side.ids).branches for side in (pair.base, pair.source)]))
    engine._budget = Budget(chunk_tokens=2 * n + 10)
    heads, block = [], replaying.lean_block

    def watch(layer, rows, spans):
        heads.append(len(rows)) if spans[0].keep is not None else None
        return block(layer, rows, spans)

    monkeypatch.setattr(replaying, "lean_block", watch)
    patch_positions(engine, [pair], skip_unchanged=False, check=False)
    assert heads and n < max(heads) <= 2 * n + 10


def test_the_staircase_takes_no_row_along_that_is_nobodys(monkeypatch):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    values, taken, lent = torch.zeros(1, handle.d_model), {}, {}

    def counted(layer, rows, spans):
        index = list(handle.arch.layers).index(layer)
        taken[index] = taken.get(index, 0) + sum(span.asked_rows for span in spans)
        lent[index] = lent.get(index, 0) + len(rows)
        return block(layer, rows, spans)

    block = replaying.lean_block
    monkeypatch.setattr(replaying, "lean_block", counted)
    early, late = len(pair.base.ids) - 4, len(pair.base.ids) - 2
    cells = [Patch("resid_pre", 0, (early,), values), *(Patch("resid_pre", 1, (p,), values) for p in (early, late))]
    engine_of(handle).sweep(scorer, [(cell,) for cell in cells])
    n = len(scorer.branches.row)
    assert taken[0] == n - early and taken[1] == 2 * (n - early) + (n - late)
    readers = len(scorer.branches.readers)
    assert n - late < 2 * readers <= n - early  # the last layer: keys and values of all, then only what is read
    assert lent[2] == taken[1] and taken[2] == 2 * readers + n - late  # but the short suffix whole


def test_the_limit_bounds_the_staircase_and_the_vocabulary(monkeypatch):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    stairs, rows = [], []
    block, unembed = replaying.lean_block, type(handle.arch).unembed

    def counted(layer, h, spans):
        stairs.append(sum(span.rows for span in spans if span.keep is None))  # plain runs are not the staircase's
        return block(layer, h, spans)

    monkeypatch.setattr(replaying, "lean_block", counted)
    monkeypatch.setattr(
        type(handle.arch), "unembed", lambda self, x: rows.append(x.numel() // x.shape[-1]) or unembed(self, x)
    )
    most, whole = [], len(scorer_of(pair, pair.base.ids).branches.row)  # the longest suffix, once
    for budget in (Budget(stacked_tokens=whole, vocabulary_rows=4), Budget()):
        engine = engine_of(handle)
        engine._budget = budget
        stairs.clear(), rows.clear()
        patch_positions(engine, [pair], skip_unchanged=False, check=False)
        most.append((max(stairs), max(rows)))
    readers = len(scorer_of(pair, pair.base.ids).branches.readers)
    assert most[0][0] <= whole < most[1][0] and most[0][1] <= max(4, readers) < most[1][1]
    limits = [Budget.of(handle, memory_mb) for memory_mb in (0.3, 3, 30)]
    assert limits[0].stacked_tokens < limits[1].stacked_tokens < limits[2].stacked_tokens
    assert limits[0].vocabulary_rows < limits[1].vocabulary_rows == limits[2].vocabulary_rows == 256
    assert limits[0].chunk_tokens < limits[1].chunk_tokens <= limits[2].chunk_tokens == 768


@pytest.mark.parametrize("memory_mb", [0.01, 0.0, float("nan"), 1e9])
def test_a_limit_that_cannot_be_kept_is_refused_before_work(memory_mb):
    with pytest.raises(InputError, match="memory_mb"):
        engine_of(tiny_handle("llama"), memory_mb=memory_mb)


TOLD = {
    "cuda": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "cpu": RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
    "mps": RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB)"),
    "python": MemoryError(),
}


def everything(handle, tmp_path):
    pair = tiny_pair(handle, correct=" the", shortcut=" is")
    runs = [LensRun(pair.base, pair.answers, {})]
    return {
        "patching": lambda: patch_positions(handle, [pair]),
        "patching by reference": lambda: patch_positions(handle, [pair], engine="reference"),
        "path patching": lambda: path_patch(handle, [pair], senders=[Node("z", 0)]),
        "a lens": lambda: answer_lens(handle, runs),
        "a token lens": lambda: token_lens(handle, runs),
        "attribution": lambda: attribute(handle, runs),
        "the head table": lambda: head_table(handle, runs),
        "a store": lambda: collect(handle, runs, tmp_path / "store"),
        "a tuned lens": lambda: train_tuned_lens(handle, [pair.base, pair.source], steps=1),
        "generation": lambda: generate(handle, [pair.base]),
    }


@pytest.mark.parametrize("device", TOLD)
def test_running_out_of_memory_is_one_clear_error_and_leaves_nothing_behind(device, tmp_path):
    handle = tiny_handle("llama")

    def fail(value):
        raise TOLD[device]

    for name, work in everything(handle, tmp_path).items():
        with (
            attached([(handle.arch.site("mlp_out", 1), fail)]),
            pytest.raises(RunError, match="out of memory") as caught,
        ):
            work()
        assert "to do:" in str(caught.value), name
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in handle.model.modules())
    assert not (tmp_path / "store").exists()


def test_a_real_allocation_that_fails_is_named_and_other_errors_are_left_alone():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    with pytest.raises(RunError, match="out of memory: patching"):
        patch_positions(handle, [pair], metric=lambda logits: torch.empty(2**50))
    with pytest.raises(RuntimeError, match="shapes") as caught:
        patch_positions(handle, [pair], metric=lambda logits: logits @ logits)
    assert not isinstance(caught.value, RunError)
