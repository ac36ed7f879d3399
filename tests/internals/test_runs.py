"""The commands' functions write the tables that their parts give, and go on where they were stopped."""

from __future__ import annotations

import pytest

from latentkt.cli import main
from latentkt.errors import InputError, LatentKTError
from latentkt.internals import attribute_items, engine_of, lens_items, patch_items
from latentkt.results import load_run
from latentkt.trapqa import ItemSet, builtin_items
from latentkt.trapqa.loading import save_items
from latentkt.trapqa.schema import parse_item
from tests.models.tiny import tiny_handle


def same_length(item):
    """The item with a control whose constraint has as many tokens under the tiny tokenizer: an item of test letters."""
    count = len(tiny_handle("llama").tokenizer(item.text)["input_ids"])
    (start, stop), found = item.spans["constraint"][0], item.to_dict()
    for letters in range(1, 60):
        text = item.text[:start] + "q" * letters + item.text[stop:]
        if len(tiny_handle("llama").tokenizer(text)["input_ids"]) == count:
            moved = letters - (stop - start)
            spans = {
                role: [[a + moved * (a > start), b + moved * (b > start)] for a, b in ranges]
                for role, ranges in found["spans"].items()
            }
            return parse_item({**found, "control": {"kind": "flip", "text": text, "spans": spans}}, where=item.id)
    raise AssertionError(item.id)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Three built-in items of one family, in a file of their own."""
    whole = builtin_items("scientist")
    chosen = [same_length(item) for item in whole.filter(family=whole.items[0].family).items[:3]]
    path = tmp_path_factory.mktemp("items") / "few.jsonl"
    save_items(ItemSet(items=tuple(chosen), patterns=whole.patterns), path)
    return str(path)


def test_lens_and_attribution_of_items(items, tmp_path):
    handle = tiny_handle("llama")
    run = load_run(lens_items(handle, tmp_path / "lens", items=items, limit=1, tokens=True, template="plain"))
    lens, tokens = run.tables["lens"], run.tables["lens_tokens"]
    assert len(lens) == 2 * 2 * (handle.n_layers + 1) and set(lens["which"]) == {"item", "control"}
    assert set(tokens["layer"]) == set(range(-1, handle.n_layers)) and len(run.tables["lens_skipped"]) == 0
    run = load_run(attribute_items(handle, tmp_path / "dla", items=items, limit=1, template="plain"))
    rows = run.tables["attribution"]
    sums = rows.groupby(["item", "which", "order"])[["contribution"]].sum()["contribution"]
    truth = rows.groupby(["item", "which", "order"])["difference"].first()
    assert (sums - truth).abs().max() < 1e-4 and "ov_effect" in run.tables["heads"]


def test_patching_of_items_with_placebos(items, tmp_path):
    handle = tiny_handle("llama")
    options = {"items": items, "template": "plain", "layers": [0], "roles": ("constraint", "last")}
    run = load_run(patch_items(engine_handle(handle), tmp_path / "patch", **options))
    patched, placebo, skipped = (run.tables[name] for name in ("patch", "placebo", "patch_skipped"))
    assert len(patched) + 4 * len(skipped) == 3 * 2 * 2 * 2 and len(placebo) == len(patched)
    assert {"denoise", "noise"} >= set(patched["frame"].dropna()) and patched["effect"].notna().any()
    assert "verdict" in run.tables["effects"]
    with pytest.raises(LatentKTError):
        patch_items(handle, tmp_path / "patch", **options)


def test_tables_without_rows_have_the_columns_of_those_with_rows(items, tmp_path):
    """One item that cannot be paired stands before two that can: the parts must still fit together."""
    from latentkt.internals.runs import COLUMNS_OF
    from latentkt.trapqa import load_items

    handle = tiny_handle("llama")
    known = load_items(items)
    shifted = next(item for item in builtin_items("scientist") if item.id not in {one.id for one in known})
    path = tmp_path / "mixed.jsonl"
    save_items(ItemSet(items=(shifted, *known.items[:1]), patterns=known.patterns), path)
    options = {"items": str(path), "template": "plain", "orders": ("correct_first",)}
    run = load_run(patch_items(handle, tmp_path / "patch", layers=[0], roles=("last",), **options))
    assert list(run.tables["patch_skipped"]["item"]) == [shifted.id] and len(run.tables["patch"]) == 2
    run_lens = load_run(lens_items(handle, tmp_path / "lens", tokens=True, **options))
    run_dla = load_run(attribute_items(handle, tmp_path / "dla", **options))
    for name, table in {**run.tables, **run_lens.tables, **run_dla.tables}.items():
        if name in COLUMNS_OF:
            assert tuple(table.columns) == COLUMNS_OF[name], name


def engine_handle(handle):
    return engine_of(handle).handle


def test_the_command_says_what_is_wrong(items, tmp_path, capsys):
    assert main(["lens", str(tmp_path / "nothing"), "--items", items, "--out", str(tmp_path / "x")]) == 2
    assert "latentkt lens:" in capsys.readouterr().err
    with pytest.raises(InputError, match="option orders"):
        lens_items(tiny_handle("llama"), tmp_path / "y", items=items, orders=("both",))
