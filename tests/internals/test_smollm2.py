"""On the real model: seeded cells of every site against one plain forward a cell, and the other engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.internals import attribute, engine_of
from latentkt.internals.engines.base import Patch
from latentkt.internals.lens import LensRun
from latentkt.internals.metrics import scorer_of
from latentkt.models import encode, make_pair, open_model

pytestmark = pytest.mark.smollm2
CELLS = 24


@pytest.fixture(scope="module")
def handle():
    return open_model("smollm2", check=False)


@pytest.fixture(scope="module")
def pair(handle):
    prompts = [
        encode(
            handle, f"The capital of {name} is the old city of", chat=False, spans={"shortcut": [(15, 15 + len(name))]}
        )
        for name in ("France", "Italy")
    ]
    return make_pair(handle, *prompts, correct=" Paris", shortcut=" Rome", name="capital")


@pytest.mark.slow
@pytest.mark.parametrize("site", ["resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v"])
def test_seeded_cells_of_a_site_equal_one_forward_a_cell(handle, pair, site):
    assert len(pair.base.ids) <= 12
    fast, reference = engine_of(handle), engine_of(handle, "reference")
    rng = np.random.default_rng(0)
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    cells = seeded(handle, pair, fast, site, rng, CELLS)
    ours, truth = fast.sweep(scorer, cells), reference.sweep(scorer, cells)
    np.testing.assert_allclose([s.value for s in ours], [s.value for s in truth], atol=1e-4)


def seeded(handle, pair, engine, site, rng, count):
    layers = rng.integers(handle.n_layers, size=count).tolist()
    values = engine.values(pair.source.ids, [(site, layer) for layer in set(layers)])
    cells = []
    for layer in layers:
        position = int(rng.integers(pair.alignment.first_difference, len(pair.base.ids)))
        value = values[site, layer][[position]]
        head = int(rng.integers(value.shape[1])) if value.dim() == 3 else None
        cells.append((Patch(site, layer, (position,), value if head is None else value[:, head], head),))
    return cells


@pytest.mark.parametrize("name", ["reference", "transformer_lens", "nnsight"])
def test_engines_agree_on_a_few_cells(handle, pair, name):
    fast, other = engine_of(handle), engine_of(handle, name)
    rng = np.random.default_rng(1)
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    cells = [cell for site in ("resid_post", "z", "v") for cell in seeded(handle, pair, fast, site, rng, 2)]
    ours, theirs = fast.sweep(scorer, cells), other.sweep(scorer, cells)
    np.testing.assert_allclose([s.value for s in ours], [s.value for s in theirs], atol=1e-4)
    assert max(abs(score.value - fast.score(scorer).value) for score in ours) > 0.01


def test_attribution_adds_up(handle, pair):
    table = attribute(handle, [LensRun(pair.base, pair.answers, {})])
    logits = handle.logits(torch.tensor([pair.base.ids]))[0, -1]
    truth = float(logits[pair.answers.correct_ids[0]] - logits[pair.answers.shortcut_ids[0]])
    assert table["contribution"].sum() == pytest.approx(truth, abs=1e-4)
