"""Probes, steering and verdicts of items, as their commands write them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentkt.cli import main
from latentkt.errors import InputError, RunError
from latentkt.internals import (
    collect,
    item_run,
    probe_items,
    probe_rows,
    random_init,
    role_features,
    steer_items,
    verdict_items,
)
from latentkt.internals.probes.sweep import stacked
from latentkt.report.sections import probes
from latentkt.results import load_run
from latentkt.trapqa import ItemSet, mark_item
from latentkt.trapqa.loading import save_items
from tests.models.tiny import tiny_handle

TOPICS = ("nets", "dots", "inns", "toes")


def short(family, number, *, group=None, level=None):
    """A short item whose control is as long under the tiny tokenizer, letter by letter."""
    right, wrong = ("no", "yes") if number % 2 else ("yes", "no")
    return mark_item(
        id=f"{family}-{number}",
        kind="scientist",
        family=family,
        polarity="negated",
        text=f"Dr {number} of [[shortcut: {family}]] [[constraint: qqjj]] won. Who?",
        control={"constraint": "jjqq"},
        correct="Ann",
        shortcut="Bob",
        group=group,
        level=level,
        probe_questions=[
            {"role": "eliminative", "text": f"Did Bob {right}?", "answer": True},
            {"role": "compatibility", "text": f"Did Ann {wrong}?", "answer": False},
        ],
        source=["Made for this test."],
    )


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    made = [short(family, n, group=f"g{n}{family}", level=n) for family in TOPICS for n in range(3)]
    path = tmp_path_factory.mktemp("items") / "short.jsonl"
    save_items(ItemSet(items=tuple(made)), path)
    return str(path)


def test_probes_of_items(items, tmp_path):
    handle = tiny_handle("llama")
    options = {"items": items, "template": "plain", "roles": ("constraint", "last"), "kinds": ("ridge",)}
    run = load_run(probe_items(handle, tmp_path / "probe", **options))
    layers, folds, skipped = (run.tables[name] for name in ("probe_layers", "probe", "probe_skipped"))
    assert set(layers["role"]) == {"constraint", "last"} and set(layers["layer"]) == {-1, 0, 1, 2}
    assert set(layers["target"]) | set(skipped["which"]) == {
        "answer_side", "polarity", "first_option_is_correct", "fact_known", "shortcut_favoured",
    }  # fmt: skip
    side = layers[(layers["target"] == "answer_side") & (layers["split"] == "generalisation")]
    assert (side["n_rows"] == 48).all() and side["random_init_score"].notna().all()
    there = side[side["role"] == "constraint"].set_index("layer")
    assert there.loc[0, "score"] > 0.9  # the constraint's tokens say it, and so does the bag of tokens
    assert not side["evidence"].any() or (side["bag_score"] < 0.9).all()
    assert folds.groupby(["target", "split", "role", "layer"])["fold"].nunique().max() <= 5
    assert len(run.tables["facts_known"]) == 12
    with pytest.raises(InputError, match="targets of a probe"):
        probe_items(handle, tmp_path / "other", targets=["truth"], **options)


def test_steering_of_items(items, tmp_path):
    handle = tiny_handle("llama")
    path = steer_items(handle, tmp_path / "steer", items=items, limit=6, template="plain", n_random=2, texts=1, layer=1)
    run = load_run(path)
    table = run.tables["steer"]
    assert set(table["model"]) == {"trained", "random weights"}
    assert set(table["control"]) == {"", "random 0", "random 1", "arbitrary labels", "read", "unread"}
    assert set(table["item"]) == {f"{family}-{n}" for family in TOPICS[:2] for n in range(3)}
    assert table.loc[table["model"] == "trained", "layer"].eq(1).all() and table["base"].eq("item").all()
    assert set(run.tables["steer_text"]["how"]) == {"none", "add"}
    with pytest.raises(InputError, match="two families or more"):
        steer_items(handle, tmp_path / "one", items=items, limit=3, template="plain", n_random=1)


def test_verdicts_of_items_from_the_command_line(items, tmp_path, capsys):
    folder = tmp_path / "model"
    handle = tiny_handle("llama")
    handle.model.save_pretrained(folder)
    handle.tokenizer.save_pretrained(folder)
    out = tmp_path / "verdict"
    words = ["verdict", str(folder), "--items", items, "--out", str(out), "--template", "plain", "--layers", "0", "2"]
    assert main(words) == 0
    assert "constraint" in capsys.readouterr().out
    run = load_run(out)
    verdicts, levels = run.tables["verdict"], run.tables["explicitness"]
    assert len(verdicts) == 12 and verdicts["sureness"].notna().all()
    assert set(verdicts["n_combinations"]) == {8}  # 2 orders, 2 donors (3 items a family), 2 directions
    assert set(levels["statistic"]) == {"share", "mean", "change"} and set(levels["level"].dropna()) == {0, 1, 2}


def test_what_is_known_to_be_wrong_is_refused_before_anything_is_run(items, tmp_path):
    handle, shared = tiny_handle("llama"), {"items": items, "template": "plain"}
    for said, call, options in (
        ("layer_step", probe_items, {"layer_step": 0}),
        ("max_folds", probe_items, {"max_folds": 1}),
        ("roles that no item has", probe_items, {"roles": ("constraints",)}),
        ("limit of items", probe_items, {"limit": 0}),
        ("limit of items", verdict_items, {"limit": -1}),
        ("placebo donors", verdict_items, {"donors": 0}),
        ("roles that no item has", steer_items, {"role": "end"}),
        ("kind of probe", steer_items, {"kind": "svm"}),
        ("target", steer_items, {"target": "truth"}),
        ("ways to steer", steer_items, {"how": ("push",)}),
        ("unknown layer", steer_items, {"layer": handle.n_layers}),
        ("layer of a direction", steer_items, {"layer": -1}),
    ):
        with pytest.raises(InputError, match=said):
            call(handle, tmp_path / f"{call.__name__}-{said}-{len(str(options))}", **shared, **options)


def test_a_verdict_is_not_gone_on_with_in_other_layers(items, tmp_path):
    handle = tiny_handle("llama")
    options = {"items": items, "template": "plain", "limit": 1, "orders": ("correct_first",)}
    verdict_items(handle, tmp_path / "v", layers=[0], donors=1, **options)
    with pytest.raises(RunError, match="another identity") as refused:
        verdict_items(handle, tmp_path / "v", layers=[1], donors=1, resume=True, **options)
    assert "options.layers" in str(refused.value.found)


def test_items_whose_facts_cannot_be_asked_are_listed(tmp_path):
    made = [short(family, n) for family in TOPICS[:2] for n in range(2)]
    made[0] = replace(made[0], probe_questions=())
    save_items(ItemSet(items=tuple(made)), tmp_path / "items.jsonl")
    options = {"items": str(tmp_path / "items.jsonl"), "template": "plain", "roles": ("last",), "kinds": ("ridge",)}
    out = probe_items(tiny_handle("llama"), tmp_path / "probe", targets=["fact_known"], **options)
    skipped = load_run(out).tables["probe_skipped"]
    listed = skipped[skipped["item"] == made[0].id]
    assert listed["which"].tolist() == ["fact_known"] and "without both probe questions" in listed["reason"].item()
    assert not set(skipped["item"]) & {item.id for item in made[1:]}


def test_one_family_has_no_probe_and_no_slope_and_says_so(items, tmp_path):
    """The smallest run: every target is refused with its reason, and the report can be made."""
    handle = tiny_handle("llama")
    options = {"items": items, "template": "plain", "limit": 1}
    run = load_run(probe_items(handle, tmp_path / "probe", roles=("last",), kinds=("ridge",), **options))
    assert len(run.tables["probe_skipped"]) == 5 and probes.section(run) is None
    levels = load_run(verdict_items(handle, tmp_path / "verdict", layers=[0], **options)).tables["explicitness"]
    assert levels.loc[levels["statistic"] == "change", "value"].isna().all()


def test_special_tokens_stay_out_of_means(items, tmp_path):
    """A chat prompt has special tokens among the roles `template` and `answer`; none is in a mean."""
    handle = tiny_handle("llama")
    run = item_run(handle, short("nets", 1), template="chat")
    specials = [n for n, special in enumerate(run.prompt.is_special) if special]
    assert specials
    rows = probe_rows(handle, [run], roles=("answer", "template"), random_layers=0)
    role = "template"
    places = [p for p in run.prompt.positions(role) if not run.prompt.is_special[p]]
    assert len(places) < len(run.prompt.positions(role))
    store = collect(handle, [run], tmp_path / "store", sites=("resid_post",), positions="all")
    found = stacked(rows[rows["role"] == role], "residual")[0]
    for layer in range(handle.n_layers):
        np.testing.assert_allclose(found[layer + 1], store["resid_post", layer][places].mean(0), atol=1e-5)
    features, prompts, layers = role_features(store, role=role)
    np.testing.assert_allclose(features[0], found[1:], atol=1e-5)
    assert prompts == [0] and layers == list(range(handle.n_layers))


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2", "neox_parallel"])
def test_a_random_model_is_drawn_anew_and_may_be_cut(family):
    handle = tiny_handle(family)
    whole, cut = random_init(handle, seed=3), random_init(handle, seed=3, layers=1)
    assert whole.n_layers == handle.n_layers and cut.n_layers == 1
    embedding = whole.model.get_input_embeddings().weight
    assert not np.allclose(embedding.detach(), handle.model.get_input_embeddings().weight.detach())
    again = random_init(handle, seed=4, layers=1)
    assert not np.allclose(again.model.get_input_embeddings().weight.detach(), embedding.detach())
