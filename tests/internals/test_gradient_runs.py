"""The commands atp, knockout and faithfulness write whole tables, go on where they stopped, and say what is wrong."""

from __future__ import annotations

import pytest

from latentkt.cli import main
from latentkt.errors import LatentKTError
from latentkt.internals import atp_items, faithfulness_items, knockout_items
from latentkt.internals.gradient_runs import GRADIENT_COLUMNS
from latentkt.results import load_run
from latentkt.trapqa import ItemSet, builtin_items, load_items, save_items
from tests.internals.test_runs import items  # noqa: F401  (a fixture)
from tests.models.tiny import tiny_handle, tiny_model, tiny_tokenizer

PLAIN = {"template": "plain", "orders": ("correct_first",)}


@pytest.fixture(scope="module")
def mixed(items, tmp_path_factory):  # noqa: F811
    """An item that cannot be paired under the tiny tokenizer, and one that can."""
    known = load_items(items)
    shifted = next(item for item in builtin_items("scientist") if item.id not in {one.id for one in known})
    path = tmp_path_factory.mktemp("mixed") / "mixed.jsonl"
    save_items(ItemSet(items=(shifted, *known.items[:1]), patterns=known.patterns), path)
    return str(path), shifted.id


def test_every_table_has_its_columns_and_what_was_left_out(mixed, tmp_path):
    path, shifted = mixed
    handle = tiny_handle("llama")
    runs = [
        load_run(atp_items(handle, tmp_path / "atp", items=path, edges=True, keep=20, top=3, sample=10, **PLAIN)),
        load_run(knockout_items(handle, tmp_path / "cut", items=path, edges=[("constraint", "last")], **PLAIN)),
        load_run(faithfulness_items(handle, tmp_path / "kept", items=path, shares=(0.2,), **PLAIN)),
    ]
    for run, name in zip(runs, ("atp", "knockout", "faithfulness"), strict=True):
        for table in set(GRADIENT_COLUMNS) & set(run.tables):
            assert tuple(run.tables[table].columns) == GRADIENT_COLUMNS[table], table
            assert len(run.tables[table])
        left = list(run.tables[f"{name}_skipped"]["item"])
        assert left == ([] if name == "knockout" else [shifted])
    check = runs[0].tables["atp_check"]
    assert set(check["method"]) == {"atp", "eap"} and (check["n_sampled"] == 10).all()
    assert set(runs[1].tables["knockout"]["which"]) == {"item", "control"}
    assert set(runs[2].tables["faithfulness"]["direction"]) == {"control_to_item", "item_to_control"}


def test_an_existing_run_is_refused_and_a_finished_one_resumes_to_itself(mixed, tmp_path):
    path, _ = mixed
    handle = tiny_handle("llama")
    options = {"items": path, "edges": [("shortcut", "last")], "layers": [0], **PLAIN}
    first = load_run(knockout_items(handle, tmp_path / "a", **options)).tables["knockout"]
    with pytest.raises(LatentKTError):
        knockout_items(handle, tmp_path / "a", **options)
    again = load_run(knockout_items(handle, tmp_path / "b", **options)).tables["knockout"]
    assert first.equals(again)


@pytest.mark.parametrize(
    ("measure", "begun", "other", "named"),
    [
        (knockout_items, {"edges": [("shortcut", "last")], "layers": [0]}, {"layers": [1]}, "options.layers"),
        (knockout_items, {"edges": [("shortcut", "last")], "layers": [0]}, {"metric": "first_token"}, "options.metric"),
        (atp_items, {"sites": ("mlp_out",), "top": 0, "sample": 0}, {"roles": ("last",)}, "options.roles"),
        (atp_items, {"sites": ("mlp_out",), "top": 0, "sample": 0}, {"layers": range(1)}, "options.layers"),
        (faithfulness_items, {"shares": (0.5,), "curves": ("keep",)}, {"rankings": ("random",)}, "options.rankings"),
    ],
)
def test_a_run_is_not_gone_on_with_under_other_options(mixed, tmp_path, measure, begun, other, named):
    """What was measured before the stop and after it would stand in one table."""
    path, _ = mixed
    handle = tiny_handle("llama")
    measure(handle, tmp_path / "run", items=path, **begun, **PLAIN)
    measure(handle, tmp_path / "run", items=path, resume=True, **begun, **PLAIN)
    with pytest.raises(LatentKTError) as refused:
        measure(handle, tmp_path / "run", items=path, resume=True, **{**begun, **other}, **PLAIN)
    assert named in str(refused.value.found)


def test_a_misspelt_role_is_refused(mixed, tmp_path):
    path, _ = mixed
    for measure, options in ((atp_items, {"roles": ("lst",)}), (knockout_items, {"edges": [("constrain", "last")]})):
        with pytest.raises(LatentKTError, match="roles that no item has"):
            measure(tiny_handle("llama"), tmp_path / measure.__name__, items=path, **options, **PLAIN)


def test_the_commands_run_and_refuse(items, tmp_path, capsys):  # noqa: F811
    folder = tmp_path / "model"
    tiny_model("llama", num_hidden_layers=2).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    shared = ["--items", items, "--limit", "1", "--template", "plain", "--orders", "shortcut_first"]
    for words in (
        ["atp", "--method", "ig", "--sites", "attn_out", "--positions", "--top", "2", "--sample", "0"],
        ["atp", "--qk-fix", "--sites", "q", "--edges"],
        ["knockout", "--edges", "constraint:last", "--window", "2", "--heads"],
        ["faithfulness", "--of", "edges", "--shares", "0.5", "--curves", "keep"],
    ):
        out = str(tmp_path / "-".join(words[:3]).replace("--", ""))
        assert main([words[0], str(folder), *words[1:], *shared, "--out", out]) == 0, words
        assert capsys.readouterr().out.strip() == out
    for words, said in (
        (["atp", "--method", "ig", "--steps", "3"], "steps"),
        (["knockout", "--edges", "constraint"], "two roles with a colon"),
        (["faithfulness", "--rankings", "eap"], "ranking of nodes"),
    ):
        assert main([words[0], str(folder), *words[1:], *shared, "--out", str(tmp_path / "no")]) == 2
        assert said in capsys.readouterr().err
