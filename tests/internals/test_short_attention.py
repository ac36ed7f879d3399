"""Attention written out gives what the fused kernel gives, however it is cut."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from latentkt.internals import short_attention
from latentkt.internals.short_attention import attend

SHAPES = {  # variants, query heads, key heads, tokens, keys
    "heads share keys": (3, 6, 2, 5, 9),
    "each head its own": (2, 4, 4, 3, 3),
    "all heads share": (2, 5, 1, 4, 11),
    "one token": (4, 2, 1, 1, 6),
    "one variant": (1, 6, 3, 7, 7),
}


def drawn(variants, heads, n_kv, tokens, keys):
    noise = torch.Generator().manual_seed(0)
    q = torch.randn(variants, heads, tokens, 8, generator=noise)
    k, v = (torch.randn(variants, n_kv, keys, 8, generator=noise) for _ in range(2))
    sees = torch.rand(tokens, keys, generator=noise) < 0.6
    sees[torch.arange(tokens), keys - tokens + torch.arange(tokens)] = True  # itself
    return q, k, v, torch.zeros(tokens, keys).masked_fill(~sees, torch.finfo(torch.float32).min)


def one_by_one(q, k, v, mask, scale):
    """Each head of each variant by itself."""
    each = q.shape[1] // k.shape[1]
    out = torch.empty_like(q)
    for variant in range(len(q)):
        for head in range(q.shape[1]):
            scores = q[variant, head] @ k[variant, head // each].T * scale + mask
            out[variant, head] = scores.softmax(-1) @ v[variant, head // each]
    return out


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("at_once", [1, 100, 2**17], ids=["variant by variant", "some", "all"])
def test_it_is_attention_head_by_head(shape, at_once, monkeypatch):
    q, k, v, mask = drawn(*shape)
    monkeypatch.setattr(short_attention, "_AT_ONCE", at_once)
    torch.testing.assert_close(attend(q, k, v, mask, scale=0.3), one_by_one(q, k, v, mask, 0.3), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_fused_kernel_gives_the_same(shape, monkeypatch):
    q, k, v, mask = drawn(*shape)
    short = attend(q, k, v, mask, scale=0.3)
    monkeypatch.setattr(short_attention, "_FUSED_FROM", 0)
    asked = []
    fused = functional.scaled_dot_product_attention
    monkeypatch.setattr(functional, "scaled_dot_product_attention", lambda *a, **k: asked.append(1) or fused(*a, **k))
    torch.testing.assert_close(attend(q, k, v, mask, scale=0.3), short, atol=1e-6, rtol=1e-5)
    assert asked


def test_long_runs_are_left_to_the_fused_kernel(monkeypatch):
    q, k, v, mask = drawn(1, 9, 3, 180, 180)
    monkeypatch.setattr(short_attention, "_write_out", lambda *_: pytest.fail("written out"))
    torch.testing.assert_close(attend(q, k, v, mask, scale=0.3), one_by_one(q, k, v, mask, 0.3), atol=1e-5, rtol=1e-5)


def test_few_scores_are_held_at_once(monkeypatch):
    q, k, v, mask = drawn(6, 4, 2, 5, 9)
    sizes = []
    write_out = short_attention._write_out
    monkeypatch.setattr(short_attention, "_AT_ONCE", 2 * 4 * 5 * 9)
    monkeypatch.setattr(short_attention, "_write_out", lambda *a: sizes.append(len(a[0])) or write_out(*a))
    attend(q, k, v, mask, scale=0.3)
    assert sizes == [4, 4, 4]  # two variants of two key heads
