"""Half precision: metrics in float32, the dtype in the result; the fast engine still follows the reference."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from latentkt.internals import answer_lens, patch_roles
from latentkt.internals.lens import LensRun
from latentkt.models import handle_from_hf
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_model, tiny_tokenizer


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_follows_the_reference_and_is_named(dtype):
    exact = tiny_model("llama")
    half = handle_from_hf(copy.deepcopy(exact).to(dtype), tiny_tokenizer(), name="half")
    whole = handle_from_hf(exact, tiny_tokenizer(), name="whole")
    pair = tiny_pair(half)
    fast, slow = (patch_roles(half, [pair], engine=engine) for engine in ("fast", "reference"))
    truth = patch_roles(whole, [tiny_pair(whole)])
    assert (fast["dtype"] == str(dtype).removeprefix("torch.")).all()
    rounding = 0.5 if dtype == torch.bfloat16 else 0.05
    np.testing.assert_allclose(fast["patched_value"], slow["patched_value"], atol=rounding)
    np.testing.assert_allclose(fast["patched_value"], truth["patched_value"], atol=rounding)
    table, _ = answer_lens(half, [LensRun(pair.base, pair.answers, {})])
    assert table["log_odds"].dtype == np.float64 and table["log_odds"].notna().all()
