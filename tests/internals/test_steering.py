"""Steering moves the planted direction and nothing else; controls have its length; other models are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import DataError, InputError
from latentkt.internals import (
    direction_of_probe,
    fit_probe,
    make_direction,
    patch,
    random_directions,
    read_and_unread,
    steer,
    steer_text,
)
from latentkt.models import encode
from tests.internals.planted import LAYER, WIDTH, planted_handle, planted_pair
from tests.models.tiny import tiny_handle

OUT = 3  # the planted head writes there, and the unembedding reads it


def unit(*places):
    vector = torch.zeros(WIDTH)
    vector[list(places)] = 1.0
    return vector


@pytest.fixture(scope="module", params=[True, False], ids=["works", "zeroed"])
def planted(request):
    handle = planted_handle(works=request.param)
    return handle, planted_pair(handle), request.param


def effects(table):
    return table.set_index(["how", "strength", "control"])["effect"].sort_index()


def test_the_planted_direction_steers_and_random_ones_do_not(planted):
    handle, pair, works = planted
    direction = make_direction(handle, unit(OUT), layer=LAYER, name="answer", scale=1.0)
    table = steer(handle, [pair], direction, metric="first_token", n_random=8, parts=False)
    found = effects(table)
    assert found["add", 1.0, ""] > 1 and found["add", -1.0, ""] < -1
    random = found.xs(("add", 1.0))[1:]
    assert len(random) == 8 and random.abs().max() < found["add", 1.0, ""] * 0.7
    base, gap = table["base_value"].iloc[0], patch(handle, [pair], metric="first_token", layers=[LAYER], where=["last"])
    if works:
        assert found["remove", 1.0, ""] == pytest.approx(-base, rel=1e-4)
        assert found["interchange", 1.0, ""] == pytest.approx(gap["effect"].iloc[0], rel=1e-3)
    else:
        assert abs(found["remove", 1.0, ""]) < 1e-4 and abs(found["interchange", 1.0, ""]) < 1e-4


def test_controls_have_the_length_of_the_change(planted):
    handle, pair, works = planted
    direction = make_direction(handle, unit(OUT, 9), layer=LAYER, scale=0.7)
    other = make_direction(handle, unit(2, 3, 11), layer=LAYER, scale=99.0)
    same = make_direction(handle, unit(5), layer=LAYER)  # item and control are the same there
    table = steer(handle, [pair], direction, controls={"arbitrary": other, "same": same}, parts=False, n_random=2)
    nothing = table[(table["how"] == "interchange") & (table["control"] == "same")]
    assert nothing["effect"].isna().all() and nothing["delta_norm"].isna().all()
    if not works:
        return  # the runs do not differ at the last token, so that an interchange has no length at all
    by_way = table.groupby(["how", "strength"])["delta_norm"]
    np.testing.assert_allclose(by_way.max(), by_way.min(), rtol=1e-4)
    assert set(table["control"]) == {"", "random 0", "random 1", "arbitrary", "same"}


def test_a_basis_of_the_whole_space_is_a_full_patch():
    handle = tiny_handle("llama")
    texts = ["the cat did not win\na:", "the cat did the win\na:"]
    from latentkt.models import make_pair

    runs = [encode(handle, text, chat=False) for text in texts]
    pair = make_pair(handle, *runs, correct=" is", shortcut=" a", name="x")
    whole = make_direction(handle, torch.eye(handle.d_model), layer=1, name="everything")
    ours = steer(handle, [pair], whole, how=["interchange"], n_random=0, parts=False)["effect"]
    theirs = patch(handle, [pair], layers=[1], where=["last"])["effect"]
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_what_the_next_weights_read_carries_the_effect():
    handle = planted_handle()
    direction = make_direction(handle, unit(OUT, 20), layer=LAYER, scale=1.0)
    strong, weak = read_and_unread(handle, direction, share=1.0)
    torch.testing.assert_close(strong + weak, torch.eye(WIDTH))
    assert strong[OUT, OUT] == pytest.approx(1, abs=1e-4) and strong[20, 20] == pytest.approx(0, abs=1e-4)
    early = make_direction(handle, unit(2, 20), layer=LAYER - 1)  # what the head reads: features 0, 1 and 2
    read = read_and_unread(handle, early, share=1.0)[0].diagonal()
    np.testing.assert_allclose(read[:3], 1, atol=1e-4)
    np.testing.assert_allclose(read[4:], 0, atol=1e-4)
    found = effects(steer(handle, [planted_pair(handle)], direction, how=["add"], strengths=[1.0], n_random=0))
    assert found["add", 1.0, "read"] > 0.9 * found["add", 1.0, ""] > 0.5
    assert found["add", 1.0, "read"] > 2 * abs(found["add", 1.0, "unread"])  # which acts through the norm's divisor


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "neox_parallel", "opt"])
def test_every_architecture_has_its_next_weights(family):
    handle = tiny_handle(family)
    for layer in range(handle.n_layers):
        for site in ("resid_post", "attn_out", "resid_pre"):
            direction = make_direction(handle, np.eye(handle.d_model)[0], layer=layer, site=site)
            strong, weak = read_and_unread(handle, direction, share=0.5)
            torch.testing.assert_close(strong @ strong, strong, atol=1e-4, rtol=0)
            assert 0.5 < strong.trace() < handle.d_model and weak.trace() > 0


def test_a_probe_becomes_a_direction_that_steers():
    handle = planted_handle()
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 20)
    features = rng.normal(0, 0.2, size=(40, WIDTH)) + np.outer(2 * labels - 1, unit(OUT).numpy())
    probe = fit_probe(features, labels, np.repeat(range(10), 4), kind="mean_difference")
    direction = direction_of_probe(handle, probe, features, labels, layer=LAYER)
    assert direction.scale == pytest.approx(2, abs=0.2) and direction.centre[0] == pytest.approx(0, abs=0.2)
    found = effects(steer(handle, [planted_pair(handle)], direction, how=["add"], n_random=3, parts=False))
    assert found["add", 1.0, ""] > 1 > found.xs(("add", 1.0))[1:].max()


def test_text_is_steered_while_it_is_written():
    handle = planted_handle()
    pair = planted_pair(handle)
    direction = make_direction(handle, unit(OUT), layer=LAYER, scale=5.0)
    texts = steer_text(handle, {"a": pair.base, "b": pair.source}, direction, max_new_tokens=3, n_random=1)
    first = texts[texts["control"] == ""].set_index(["prompt", "strength"])["text"].str.split().str[0]
    assert (first[:, 1.0] == "is").all() and (first[:, -1.0] == "a").all()
    assert texts.loc[texts["how"] == "none", "same_as_plain"].all()
    once = steer_text(handle, {"a": pair.base}, direction, strengths=[1.0], steps="one", at=0, max_new_tokens=3)
    assert once[once["how"] == "add"]["n_edited"].tolist() == [1, 1]


def test_what_does_not_fit_is_refused():
    handle, other = planted_handle(), planted_handle(works=False)
    pair = planted_pair(handle)
    direction = make_direction(handle, unit(OUT), layer=LAYER)
    with pytest.raises(DataError, match="of another model"):
        steer(other, [pair], direction)
    with pytest.raises(DataError, match="of another model"):
        steer_text(other, {"a": pair.base}, direction)
    with pytest.raises(InputError, match="ways to steer"):
        steer(handle, [pair], direction, how=["push"])
    with pytest.raises(InputError, match="lives elsewhere"):
        steer(handle, [pair], direction, controls={"x": make_direction(handle, unit(1), layer=0)})
    with pytest.raises(InputError, match="no directions at z"):
        make_direction(handle, unit(1), layer=0, site="z")
    with pytest.raises(InputError, match="depend on each other"):
        make_direction(handle, torch.stack([unit(1), unit(1)]), layer=0)
    with pytest.raises(InputError, match="finite rows of 32"):
        make_direction(handle, torch.full((WIDTH,), torch.nan), layer=0)
    with pytest.raises(InputError, match="add or remove"):
        steer_text(handle, {"a": pair.base}, direction, how=["interchange"])
    assert [one.name for one in random_directions(direction, 2)] == ["random 0", "random 1"]
