"""Values that a patch names are those of the run that it names, and tokens that follow that run are not run again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import engine_of, patch, staircase, tables
from latentkt.internals.engines.base import FromRun, Patch
from latentkt.internals.metrics import scorer_of
from latentkt.internals.places import role_positions
from latentkt.internals.recording import record
from latentkt.internals.sources import Donor, Source, SourceRun
from latentkt.models import encode, make_pair
from tests.internals.making import llama, runs_of, tiny_pair
from tests.models.tiny import FAMILIES, tiny_handle


def test_named_values_of_any_site_are_looked_up_by_every_engine():
    handle = llama()
    pair = tiny_pair(handle)
    scorer, last = scorer_of(pair, pair.base.ids), len(pair.base.ids) - 1
    sites = ("resid_post", "z", "mlp_out", "k")
    named = [(Patch(site, 1, (last,), FromRun(pair.source.ids, (last,))),) for site in sites]
    window = tuple(Patch("resid_post", at, (last,), FromRun(pair.source.ids, (last,))) for at in (0, 1))
    found = [
        [score.value for score in engine_of(handle, engine).sweep(scorer, [*named, window])]
        for engine in ("fast", "reference")
    ]
    base = engine_of(handle).score(scorer).value
    np.testing.assert_allclose(*found, atol=1e-4)
    assert all(abs(value - base) > 1e-4 for value in found[0])


def counted_rows(monkeypatch, work):
    rows, block = [], staircase.replayed
    monkeypatch.setattr(staircase, "replayed", lambda n, h, *rest: rows.append(len(h)) or block(n, h, *rest))
    return work(), sum(rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("named", [True, False], ids=["named", "given"])
def test_tokens_that_follow_the_source_for_ever_are_not_run_again(family, named, monkeypatch):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    first = pair.alignment.first_difference
    scorer = scorer_of(pair, pair.base.ids)
    places = [(first,), (first, first + 1), (first + 1,), (first, first + 2)]
    stream = engine_of(handle, "reference").values(pair.source.ids, [("resid_post", n) for n in (0, 1)])

    def cells(engine):
        theirs = engine.values(pair.source.ids, [("resid_post", n) for n in (0, 1)])
        values = {(n, at): theirs["resid_post", n][list(at)] for at in places for n in (0, 1)}
        if named:
            values = {key: FromRun(pair.source.ids, key[1]) for key in values}
        return [(Patch("resid_post", n, at, value),) for (n, at), value in values.items()]

    def swept():
        engine = engine_of(handle)
        engine.scores([scorer, replace(scorer, branches=runs_of(pair)[1])])
        return [score.value for score in engine.sweep(scorer, cells(engine))]

    true = [
        score.value
        for score in engine_of(handle, "reference").sweep(
            scorer, [(Patch("resid_post", n, at, stream["resid_post", n][list(at)]),) for at in places for n in (0, 1)]
        )
    ]
    lent, few = counted_rows(monkeypatch, swept)
    monkeypatch.setattr(tables, "_goes_on_as", lambda *_: False)
    whole, many = counted_rows(monkeypatch, swept)
    np.testing.assert_allclose(lent, true, atol=1e-4)
    np.testing.assert_allclose(whole, true, atol=1e-4)
    between = handle.n_layers - 2  # layers that a variant of layer 0 climbs, but the last; one less for layer 1
    assert many - few == ((1 + 2) * between if named else 0), "values that are only given may be anybody's"


def test_named_values_of_other_positions_are_not_those_of_tokens_that_follow_the_run():
    handle = llama()
    pair = tiny_pair(handle)
    scorer, first = scorer_of(pair, pair.base.ids), pair.alignment.first_difference
    cells = [(Patch("resid_post", 0, (first,), FromRun(pair.source.ids, (at,))),) for at in (first, first + 1)]
    fast, slow = ([score.value for score in engine_of(handle, engine).sweep(scorer, cells)]
                  for engine in ("fast", "reference"))  # fmt: skip
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert abs(fast[0] - fast[1]) > 1e-3


def test_other_values_than_the_runs_are_run():
    handle = llama()
    pair = tiny_pair(handle)
    first = pair.alignment.first_difference
    scorer = scorer_of(pair, pair.base.ids)
    engine = engine_of(handle)
    engine.scores([scorer, replace(scorer, branches=runs_of(pair)[1])])
    values = engine.values(pair.source.ids, [("resid_post", 0)])["resid_post", 0][[first]]
    for other in (values + 0.5, values.double() + 0.5):
        cells = [(Patch("resid_post", 0, (first,), other),)]
        fast, slow = (one.sweep(scorer, cells)[0].value for one in (engine, engine_of(handle, "reference")))
        assert fast == pytest.approx(slow, abs=1e-4)
        assert abs(fast - engine.sweep(scorer, [(Patch("resid_post", 0, (first,), values),)])[0].value) > 1e-3


def test_a_patch_of_all_tokens_is_run():
    handle = llama()
    pair = tiny_pair(handle)
    tail = tuple(range(pair.alignment.first_difference, len(pair.base.ids)))
    base, run = (record(handle, branches) for branches in runs_of(pair))
    assert not tables._goes_on_as(run, base, tail) and tables._goes_on_as(run, base, tail[:-1])


@pytest.mark.parametrize("check", [True, False])
def test_values_of_crossing_positions_are_put_where_they_belong(check):
    """The roles' words have changed places: the source's positions of `all` do not ascend."""
    handle = llama()

    def prompt(text, one, other):
        spans = {"shortcut": [(text.index(one), text.index(one) + 3)],
                 "constraint": [(text.index(other), text.index(other) + 3)]}  # fmt: skip
        return encode(handle, text, chat=False, spans=spans)

    base, source = prompt("q cat zz dog w x", "cat", "dog"), prompt("q dog zz cat w x", "cat", "dog")
    pair = make_pair(handle, base, source, correct=" Ann", shortcut=" Bob", name="crossing")
    options = {"where": ("all", "shortcut"), "check": check, "allow_shifted": True, "skip_unchanged": False}
    at = role_positions(pair, "all").source
    assert len(at) == at[-1] - at[0] + 1 and list(at) != sorted(at)
    fast, slow = (patch(handle, [pair], engine=engine, **options)["effect"] for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert fast.abs().max() > 1e-3


def test_positions_in_any_order_are_put_where_they_belong():
    handle = llama()
    pair = tiny_pair(handle)
    scorer, order = scorer_of(pair, pair.base.ids), (8, 10, 9, 11)
    values = engine_of(handle).values(pair.source.ids, [("resid_post", 0)])["resid_post", 0]
    cells = [
        (Patch("resid_post", 0, order, values[list(order)]),),
        (Patch("resid_post", 0, order, FromRun(pair.source.ids, order)),),
        (Patch("resid_post", 0, (8, 9, 10, 11), FromRun(pair.source.ids, order)),),
    ]
    fast, slow = ([score.value for score in engine_of(handle, engine).sweep(scorer, cells)]
                  for engine in ("fast", "reference"))  # fmt: skip
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert abs(fast[1] - fast[2]) > 1e-4


def test_a_source_that_makes_its_values_itself_is_asked():
    class Half(SourceRun):
        def fetch(self, engine, pair, keys):
            own = super().fetch(engine, pair, keys)
            return lambda key, place: own(key, place) / 2

    @dataclass
    class Named(Source):
        name: str = "theirs"
        kind, exact = "theirs", True

        def fetch(self, engine, pair, keys):
            return Half().fetch(engine, pair, keys)

    handle = llama()
    pair = tiny_pair(handle)
    whole, half, named = (patch(handle, [pair], source=source)["patched_value"]
                          for source in (SourceRun(), Half(), Named()))  # fmt: skip
    np.testing.assert_allclose(half, named, atol=1e-6)
    assert (whole - half).abs().max() > 1e-3


def test_a_run_that_is_kept_lends_nothing_to_a_patch_that_does_not_name_it():
    handle = llama()
    pair, engine = tiny_pair(handle), engine_of(handle)
    patch(engine, [pair])
    with torch.no_grad():
        for layer in handle.arch.layers:
            layer.self_attn.v_proj.weight.mul_(-1.5)
    other = tiny_pair(handle, correct=" Al", shortcut=" Bo")
    options = {"sites": ("resid_pre",), "layers": [0], "source": Donor({"tiny": pair.source})}
    fast, slow = (patch(one, [other], **options)["effect"] for one in (engine, engine_of(handle, "reference")))
    np.testing.assert_allclose(fast, slow, atol=1e-4)


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(
    ("layer", "at", "positions", "head"),
    [(1, (3,), (99,), None), (1, (3,), (-1,), None), (1, (3,), (3, 4), None), (7, (3,), (3,), None),
     (-1, (3,), (3,), None), (1, (3,), (3,), 0)],
)  # fmt: skip
def test_named_values_that_do_not_exist_are_refused(engine, layer, at, positions, head):
    handle = llama()
    pair = tiny_pair(handle)
    cells = [(Patch("resid_post", layer, at, FromRun(pair.source.ids, positions), head),)]
    with pytest.raises(InputError):
        engine_of(handle, engine).sweep(scorer_of(pair, pair.base.ids), cells)


def test_few_runs_are_kept_and_all_that_are_named_are_used():
    handle = llama()
    pair = tiny_pair(handle)
    prompts = [tuple([*pair.source.ids[:-1], token]) for token in range(20, 27)]
    cells = [(Patch("resid_post", 0, (4,), FromRun(prompt, (len(prompt) - 1,))),) for prompt in prompts]
    engine, scorer = engine_of(handle), scorer_of(pair, pair.base.ids)
    fast, slow = ([score.value for score in one.sweep(scorer, cells)]
                  for one in (engine, engine_of(handle, "reference")))  # fmt: skip
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert len(set(np.round(fast, 4))) == len(prompts) and len(engine._recordings) <= 4
    engine.forget()
    engine.score(scorer)
    again = [score.value for score in engine.sweep(scorer, cells)]
    np.testing.assert_allclose(again, slow, atol=1e-4)
    assert len(engine._recordings) <= 4
