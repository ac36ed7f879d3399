"""Half precision: metrics in float32, the dtype in the result; the fast engine still follows the reference."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from latentkt.internals import (
    Node,
    answer_lens,
    attribute,
    generate,
    head_table,
    patch_roles,
    path_patch,
    token_lens,
)
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
    runs = [LensRun(pair.base, pair.answers, {})]
    paths = path_patch(half, [tiny_pair(half, correct=" the", shortcut=" is")], senders=[Node("mlp_out", 1)])
    lens, dla = answer_lens(half, runs)[0], attribute(half, runs)
    columns = ((lens, "log_odds"), (token_lens(half, runs), "p_top"), (dla, "contribution"), (paths, "effect"))
    for table, column in (*columns, (head_table(half, runs), "contribution")):
        assert table[column].dtype == np.float64 and table[column].notna().all()
        assert set(table["dtype"]) == {str(dtype).removeprefix("torch.")}
    own = half.logits(torch.tensor([pair.base.ids]))
    assert own.dtype == torch.float32
    exact, rounded = (answer_lens(one, [LensRun(pair.base, pair.answers, {})])[0] for one in (whole, half))
    np.testing.assert_allclose(exact["log_odds"], rounded["log_odds"], atol=2 * rounding)
    # metrics are not rounded to the weights' dtype
    values = torch.tensor(rounded["log_odds"].to_numpy())
    assert (values.to(dtype).double() != values).any()
    written = generate(half, [pair.base], max_new_tokens=3, stop=[])[0]
    assert torch.isfinite(torch.tensor(written.logp)).all()
