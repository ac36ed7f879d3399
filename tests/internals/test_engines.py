"""Every engine gives the same numbers as the reference, and leaves the user's model as it was."""

from __future__ import annotations

import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals import engine_of
from latentkt.internals.engines.base import Patch
from latentkt.internals.metrics import scorer_of
from tests.internals.making import tiny_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle

OTHERS = ("fast", "transformer_lens", "nnsight")
MAIN = ("gpt2", "llama", "neox_parallel", "neox_sequential", "gemma2")
REFERENCE_ONLY = [(family, "fast") for family in (*FAMILIES, *MORE_FAMILIES) if family not in MAIN]
CASES = [(family, engine) for family in MAIN for engine in OTHERS] + REFERENCE_ONLY


def sites_of(handle, *, pattern=True):
    return [(s, layer) for s in handle.arch.sites for layer in range(handle.n_layers) if pattern or s != "pattern"]


def batch(pair, side):
    """Two prompts of unlike length, padded on a side."""
    rows = [pair.base.ids, pair.source.ids[2:]]
    width = max(map(len, rows))
    ids, mask = torch.zeros(2, width, dtype=torch.long), torch.zeros(2, width, dtype=torch.long)
    for n, row in enumerate(rows):
        place = slice(width - len(row), width) if side == "left" else slice(0, len(row))
        ids[n, place], mask[n, place] = torch.tensor(row), 1
    return ids, mask


@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_run_gives_the_references_activations_and_gradients(family, name):
    handle = tiny_handle(family)
    engine, reference = engine_of(handle, name), engine_of(handle, "reference")
    ids, mask = batch(tiny_pair(handle), "right")
    keys, smooth = sites_of(handle), sites_of(handle, pattern=False)

    def difference(logits):
        return logits[0, -1, 5] - logits[0, -1, 6] + logits[1, -3, 7]

    ours, truth = engine.run(ids, mask, capture=keys), reference.run(ids, mask, capture=keys)
    torch.testing.assert_close(ours.logits[mask == 1], truth.logits[mask == 1], atol=1e-4, rtol=0)
    for key in smooth:
        seen = mask == 1
        torch.testing.assert_close(ours.activations[key][seen], truth.activations[key][seen], atol=1e-4, rtol=0)
    for layer in range(handle.n_layers):
        pattern = ours.activations["pattern", layer]
        torch.testing.assert_close(pattern[0], truth.activations["pattern", layer][0], atol=1e-4, rtol=0)
    ours = engine.run(ids, mask, capture=smooth, grad_of=difference).grads
    truth = reference.run(ids, mask, capture=smooth, grad_of=difference).grads
    for key in smooth:
        torch.testing.assert_close(ours[key], truth[key], atol=1e-4, rtol=1e-4)
        assert truth[key].abs().max() > 1e-6


@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_sweep_gives_the_references_scores_at_every_site(family, name):
    handle = tiny_handle(family)
    engine, reference = engine_of(handle, name), engine_of(handle, "reference")
    pair = tiny_pair(handle)
    scorer = scorer_of(pair, pair.base.ids, "log_odds" if name == "fast" else "first_token")
    keys = sites_of(handle, pattern=False)
    source = reference.values(pair.source.ids, keys)
    last = len(pair.base.ids) - 1
    cells = []
    for key in keys:
        for positions in ((0,), (4, 5), (last,)) if name == "fast" else ((4,),):
            values = source[key][list(positions)] * 1.3 + 0.2
            cells.append((Patch(*key, positions, values),))
            if values.dim() == 3:
                cells.append((Patch(*key, positions, values[:, 1], 1),))
    ours, truth = engine.sweep(scorer, cells), reference.sweep(scorer, cells)
    base = reference.score(scorer)
    for one, other, cell in zip(ours, truth, cells, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-4), cell
        assert one.first_token_log_odds == pytest.approx(other.first_token_log_odds, abs=1e-4)
    assert sum(abs(score.value - base.value) > 1e-3 for score in truth) > 0.2 * len(cells)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_and_a_batch_change_nothing(name, side):
    handle = tiny_handle("llama")
    engine, pair = engine_of(handle, name), tiny_pair(handle)
    ids, mask = batch(pair, side)
    key = ("resid_post", 2)
    together = engine.run(ids, mask, capture=[key])
    for n, row in enumerate([pair.base.ids, pair.source.ids[2:]]):
        alone = engine.run(torch.tensor([row]), capture=[key])
        real = mask[n] == 1
        torch.testing.assert_close(together.activations[key][n, real], alone.activations[key][0], atol=1e-4, rtol=0)
        torch.testing.assert_close(together.logits[n, real], alone.logits[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["reference", *OTHERS])
def test_the_users_model_is_left_alone_also_after_an_error(name):
    handle = tiny_handle("gpt2")
    engine, pair = engine_of(handle, name), tiny_pair(handle)
    before = handle.weight_hash
    ids = torch.tensor([pair.base.ids])
    logits = handle.logits(ids)

    def fail(value):
        raise ZeroDivisionError

    with pytest.raises(Exception) as caught:
        engine.run(ids, edits={("z", 1): fail})
    assert "ZeroDivisionError" in caught.exconly() or isinstance(caught.value, ZeroDivisionError)
    engine.run(ids, capture=[("q", 0)], grad_of=lambda logits: logits[0, -1, 3])
    assert torch.equal(handle.logits(ids), logits)
    assert type(handle)(handle.name, handle.model, handle.tokenizer, handle.arch).weight_hash == before
    for module in handle.model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks and "forward" not in module.__dict__
    assert not any(parameter.requires_grad for parameter in handle.model.parameters())
    assert handle.attn_implementation == "eager"


@pytest.mark.parametrize("name", ["reference", *OTHERS])
def test_unknown_and_absent_sites_are_refused(name):
    engine = engine_of(tiny_handle("neox_parallel"), name)
    ids = torch.tensor([[3, 4, 5]])
    with pytest.raises(InputError, match="unknown site"):
        engine.run(ids, capture=[("resid", 0)])
    with pytest.raises(InputError, match="no site 'resid_mid'"):
        engine.run(ids, capture=[("resid_mid", 0)])
    with pytest.raises(InputError, match="layer 9"):
        engine.run(ids, edits={("z", 9): lambda value: value})


def test_gradients_agree_with_finite_differences():
    handle = tiny_handle("gemma2")
    engine = engine_of(handle)
    ids = torch.tensor([tiny_pair(handle).base.ids])
    for key in (("mlp_out", 1), ("v", 0), ("resid_mid", 2)):
        shape = engine.run(ids, capture=[key]).activations[key].shape
        direction = torch.randn(shape, generator=torch.Generator().manual_seed(1))

        def moved(step, key=key, direction=direction):
            logits = engine.run(ids, edits={key: lambda value: value + step * direction}).logits
            return float(logits[0, -1, 5] - logits[0, -1, 6])

        grads = engine.run(ids, capture=[key], grad_of=lambda logits: logits[0, -1, 5] - logits[0, -1, 6]).grads
        slope = float((grads[key] * direction).sum())
        assert slope == pytest.approx((moved(1e-2) - moved(-1e-2)) / 2e-2, rel=1e-2, abs=1e-3)


def test_a_number_that_a_site_has_no_part_in_has_no_gradient():
    engine = engine_of(tiny_handle("llama"))
    with pytest.raises(InputError, match="does not depend"):
        constant = torch.tensor(1.0, requires_grad=True)
        engine.run(torch.tensor([[3, 4, 5]]), capture=[("z", 0)], grad_of=lambda logits: 2 * constant)
    with pytest.raises(InputError, match="one number"):
        engine.run(torch.tensor([[3, 4, 5]]), capture=[("z", 0)], grad_of=lambda logits: logits[0, -1])


def test_a_small_memory_limit_changes_no_number():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    scorer = scorer_of(pair, pair.base.ids)
    source = engine_of(handle).values(pair.source.ids, sites_of(handle, pattern=False))
    cells = [(Patch(*key, (p,), value[[p]]),) for key, value in source.items() for p in range(len(pair.base.ids))]
    large, small = engine_of(handle), engine_of(handle, memory_mb=0.3)
    assert small._budget.stacked_tokens < len(cells) and small._budget.chunk_tokens < 64
    for one, other in zip(large.sweep(scorer, cells), small.sweep(scorer, cells), strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-4)


def test_an_edit_that_never_runs_is_an_error():
    from latentkt.models.sites import attached

    handle = tiny_handle("llama")
    with pytest.raises(RunError, match="never computed"), attached([(handle.arch.site("z", 0), lambda value: value)]):
        pass
