"""The stages that look inside give tables of the right columns, also where a batch has nothing to measure."""

from __future__ import annotations

from types import SimpleNamespace

from latentkt.internals.runs import _COLUMNS
from latentkt.study import inside
from latentkt.trapqa import builtin_items
from tests.internals.test_runs import same_length
from tests.models.tiny import tiny_handle


def context_of(items):
    options = SimpleNamespace(system=None)
    return SimpleNamespace(
        handle=tiny_handle("llama"), items={item.id: item for item in items}, template="plain", options=options
    )


def test_stages_give_their_tables():
    known = builtin_items("scientist")
    shifted = known.items[0]
    pair = same_length(known.items[1])
    context = context_of([shifted, pair])
    cells = ((pair.id, "correct_first"),)
    tables = inside.attribution(context, cells)
    assert tuple(tables["attribution"].columns) == _COLUMNS["attribution"] and len(tables["heads"])
    found = inside.placebo(context, cells)["placebo"]
    assert tuple(found.columns) == _COLUMNS["placebo"] and len(found) == 2 * 3 * context.handle.n_layers
    parts = inside.components(context, cells)["components"]
    assert set(parts["site"]) == {"attn_out", "mlp_out", "z"} and tuple(parts.columns) == _COLUMNS["patch"]
    nothing = inside.components(context, ((shifted.id, "correct_first"),))
    assert tuple(nothing["components"].columns) == _COLUMNS["patch"] and len(nothing["components_skipped"]) == 1
    from latentkt.internals import pairs_of_item, patch_roles

    patched = patch_roles(context.handle, pairs_of_item(context.handle, pair, order="correct_first", template="plain"))
    effects = inside.effects(context, (None, {"patch": patched, "placebo": found}))["effects"]
    assert "verdict" in effects.columns
