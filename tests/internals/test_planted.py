"""Every measurement finds the planted head and its role, and finds nothing when the head's weights are zeroed."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.internals import (
    answer_lens,
    attribute,
    collect,
    effects_against_placebo,
    engine_of,
    generate,
    head_table,
    patch,
    patch_positions,
    placebo_roles,
    token_lens,
    train_tuned_lens,
)
from latentkt.internals.engines.base import Replace
from latentkt.internals.lens import LensRun
from latentkt.internals.sources import Donor, Resample, Zero, mean_source
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


@pytest.mark.parametrize(
    ("base_right", "source_right", "frame"),
    [("correct", "shortcut", None), ("shortcut", "shortcut", "denoise"), ("correct", "correct", "noise"),
     ("shortcut", "correct", None), ("correct", None, None)],
)  # fmt: skip
def test_the_frame_is_named_where_exactly_one_run_is_right(base_right, source_right, frame):
    """The base run answers y*, the source run y_s; what is right is said by the pair."""
    handle = planted_handle()
    pair = planted_pair(handle, base_right=base_right, source_right=source_right)
    table = patch(handle, [pair], where=("constraint", "last"), layers=[LAYER - 1])
    assert (table["base_value"] > 0).all() and (table["source_value"] < 0).all()
    assert set(table["frame"]) == {frame}
    recovery = table.set_index("role")["recovery"]
    assert recovery["constraint"] == pytest.approx(1, rel=1e-3) and recovery["last"] == pytest.approx(0, abs=1e-3)


def gap_of(table):
    return table["source_value"].iloc[0] - table["base_value"].iloc[0]


def test_token_by_token_the_word_and_then_the_last_token_carry_it(planted):
    handle, pair, works = planted
    table = patch_positions(handle, [pair], metric="first_token").set_index(["layer", "position"])["effect"]
    word, last = pair.base.positions("constraint")[0], len(pair.base.ids) - 1
    carriers = {(LAYER - 1, word), (LAYER, last)}
    gap = patch(handle, [pair], where=("all",), layers=[0], metric="first_token")["effect"].item()
    for key, effect in table.items():
        expected = gap if works and key in carriers else 0.0
        assert effect == pytest.approx(expected, rel=1e-3, abs=1e-4), key
    assert not works or gap < -1


def test_a_window_of_layers_holds_the_head_wherever_it_begins(planted):
    handle, pair, works = planted
    table = patch(handle, [pair], sites=("attn_out",), where=("last",), layers=[0], window=2, metric="first_token")
    alone = patch(handle, [pair], sites=("attn_out",), where=("last",), layers=[0], metric="first_token")
    assert table["effect"].item() == pytest.approx(gap_of(table) if works else 0, rel=1e-3, abs=1e-5)
    assert alone["effect"].item() == pytest.approx(0, abs=1e-5)


def test_other_sources_put_in_what_they_hold(planted):
    """A donor and a mean of the other word act like the source run; one of the same word does nothing."""
    handle, pair, works = planted
    other, engine = planted_pair(handle, item="other", family="g", end="in:"), engine_of(handle)
    options = {"where": ("constraint",), "layers": [LAYER - 1], "metric": "first_token"}
    gap = gap_of(patch(handle, [pair], **options))
    key = ("resid_post", LAYER - 1)
    sources = {
        "same word": (Donor({pair.name: other.base}), 0.0),
        "other word": (Donor({pair.name: other.source}), gap),
        "drawn": (Resample({"other": other.source}), gap),
        "mean": (mean_source(engine, [("g", other.source), ("f", other.base)], [key]), gap),
    }
    for name, (source, expected) in sources.items():
        effect = patch(engine, [pair], source=source, **options)["effect"].item()
        assert effect == pytest.approx(expected, rel=1e-3, abs=1e-4), name
    with pytest.warns(UserWarning, match="zero"):
        effect = patch(engine, [pair], source=Zero(), **options)["effect"].item()
    assert (effect < -0.5) if works else abs(effect) < 1e-5


def test_effects_beyond_placebos_are_those_of_the_word(planted):
    handle, _, works = planted
    pairs = [planted_pair(handle, item=f"{f}{n}", family=f, end=e) for f in "fg" for n, e in enumerate(("a:", "in:"))]
    pool = [
        LensRun(run, pair.answers, {**pair.meta, "which": which, "right": pair.meta[right]})
        for pair in pairs
        for run, which, right in ((pair.base, "item", "base_right"), (pair.source, "control", "source_right"))
    ]
    options = {"layers": [LAYER - 1], "metric": "first_token"}
    effects = patch(handle, pairs, where=("constraint", "last"), **options)
    placebo = placebo_roles(handle, pairs, pool, roles=("constraint", "last"), **options)
    np.testing.assert_allclose(placebo[placebo["role"] == "constraint"]["effect"], 0, atol=1e-4)
    table = effects_against_placebo(effects, placebo).set_index("role")
    found = table["difference"]["constraint"]
    assert found == pytest.approx(gap_of(effects) if works else 0, rel=1e-2, abs=1e-4)
    assert table["difference"]["last"] == pytest.approx(0, abs=1e-3) and table["n_families"]["constraint"] == 2


def test_a_tuned_lens_reads_the_word_that_a_plain_one_cannot(planted):
    """Behind layer 0 the word stands in a direction that the unembedding does not read."""
    handle, pair, works = planted
    prompts = [
        run for end in ("a:", "in:", "the:") for p in [planted_pair(handle, end=end)] for run in (p.base, p.source)
    ]
    lens, _ = train_tuned_lens(handle, prompts, steps=200, learning_rate=2e-2)
    word = pair.base.positions("constraint")[0]
    odds = {}
    for name, translate in (("plain", None), ("tuned", lens)):
        runs = [LensRun(run, pair.answers, {"run": which}) for run, which in ((pair.base, "b"), (pair.source, "s"))]
        table = token_lens(handle, runs, positions=[word], translate=translate)
        by_run = table[table["layer"] == LAYER - 1].set_index("run")["first_token_log_odds"]
        odds[name] = by_run["b"] - by_run["s"]
    assert odds["plain"] == pytest.approx(0, abs=1e-5)
    assert (odds["tuned"] > 1) if works else abs(odds["tuned"]) < 0.1


def test_a_store_holds_what_the_head_wrote(planted, tmp_path):
    handle, pair, works = planted
    store = collect(handle, [pair], tmp_path / "store", layers=[LAYER - 1, LAYER], positions="last")
    base, source = store["resid_post", LAYER][:, 3]
    assert (base > 0.5 and source < -0.5) if works else max(abs(base), abs(source)) < 1e-6
    before = store["resid_post", LAYER - 1][:, 3]
    assert before[0] == before[1], "in front of the head the last token knows nothing of the word"


def test_generation_follows_the_word_that_is_put_in(planted):
    handle, pair, works = planted
    key = ("resid_post", LAYER - 1)
    word = pair.base.positions("constraint")
    values = engine_of(handle).values(pair.source.ids, [key])[key][list(word)]
    plain = generate(handle, [pair.base, pair.source], max_new_tokens=1, stop=[])
    patched = generate(handle, [pair.base], edits={key: Replace(word, values)}, steps="prefix", max_new_tokens=1)
    if works:
        assert [one.text for one in plain] == [" is", " a"] and patched[0].text == " a"
    else:
        assert patched[0].ids == plain[0].ids == plain[1].ids
