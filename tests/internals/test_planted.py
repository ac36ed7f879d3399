"""Every measurement finds the planted head and its role, and finds nothing when the head's weights are zeroed."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.internals import answer_lens, attribute, head_table, patch, token_lens
from latentkt.internals.lens import LensRun
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair

ENGINES = ("fast", "reference", "transformer_lens", "nnsight")


@pytest.fixture(scope="module", params=[True, False], ids=["works", "zeroed"])
def planted(request):
    handle = planted_handle(works=request.param)
    return handle, planted_pair(handle), request.param


def run_of(pair):
    return LensRun(pair.base, pair.answers, {"item": "planted"})


@pytest.mark.parametrize("engine", ENGINES)
def test_patching_finds_the_role_before_the_head_and_the_last_token_behind_it(planted, engine):
    handle, pair, works = planted
    table = patch(handle, [pair], engine=engine, where=("shortcut", "constraint", "last"), metric="first_token")
    effect = table.set_index(["layer", "role"])["effect"]
    gap = table["source_value"].iloc[0] - table["base_value"].iloc[0]
    if not works:
        assert gap == pytest.approx(0, abs=1e-5)
        np.testing.assert_allclose(effect, 0, atol=1e-4)
        assert table["recovery"].isna().all()
        return
    assert gap < -1
    assert effect[LAYER - 1, "constraint"] == pytest.approx(gap, rel=1e-3)
    assert effect[LAYER, "constraint"] == pytest.approx(0, abs=1e-5)
    assert effect[LAYER, "last"] == pytest.approx(gap, rel=1e-3)
    assert effect[LAYER - 1, "last"] == pytest.approx(0, abs=1e-3)
    assert effect[0, "shortcut"] == effect[1, "shortcut"] == 0


@pytest.mark.parametrize(("site", "role"), [("z", "last"), ("v", "constraint"), ("pattern", "last")])
def test_patching_head_by_head_finds_the_head(planted, site, role):
    handle, pair, works = planted
    table = patch(handle, [pair], sites=(site,), where=(role,), heads=True, metric="first_token")
    effect = table.set_index(["layer", "head"])["effect"]
    head = HEAD // 2 if site == "v" else HEAD
    gap = table["source_value"].iloc[0] - table["base_value"].iloc[0]
    found = effect[LAYER, head]
    others = effect.drop((LAYER, head)).dropna()
    np.testing.assert_allclose(others, 0, atol=1e-5)
    expected = gap if works and site != "pattern" else 0.0  # both runs attend alike: the pattern carries nothing
    assert found == pytest.approx(expected, abs=2e-3)


def test_attribution_and_the_head_table_name_the_head_and_the_role(planted):
    handle, pair, works = planted
    table = attribute(handle, [run_of(pair)])
    rows = table.set_index(["component", "layer", "head"])["contribution"]
    found, others = rows["head", LAYER, HEAD], rows.drop(("head", LAYER, HEAD))
    np.testing.assert_allclose(others, 0, atol=1e-6)
    assert (found > 1) if works else abs(found) < 1e-6
    heads = head_table(handle, [run_of(pair)]).set_index(["layer", "head", "role"])
    assert heads["attention"][LAYER, HEAD, "constraint"] > 0.95
    at_role = heads["contribution"][LAYER, HEAD, "constraint"]
    assert at_role == pytest.approx(found, rel=1e-2, abs=1e-6)


def test_the_lens_sees_the_answer_behind_the_head_only(planted):
    handle, pair, works = planted
    table, _ = answer_lens(handle, [run_of(pair)])
    odds = table.set_index("layer")["first_token_log_odds"]
    assert odds[-1] == pytest.approx(0, abs=1e-5) and odds[LAYER - 1] == pytest.approx(0, abs=1e-5)
    assert (odds[LAYER] > 1) if works else abs(odds[LAYER]) < 1e-5
    tokens = token_lens(handle, [run_of(pair)]).set_index(["layer", "position"])["first_token_log_odds"]
    first = pair.base.positions("constraint")[0]
    assert abs(tokens[LAYER, first - 1]) < 0.2  # in front of the marked token there is nothing to copy
    assert tokens[LAYER, len(pair.base.ids) - 1] == pytest.approx(odds[LAYER], abs=1e-4)
