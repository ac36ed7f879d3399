"""Figures of what was measured inside the network hold the table's numbers, and refuse what they cannot draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentkt import plots
from latentkt.errors import DataError
from latentkt.plots.attribution import grouped

TOKENS = ["The", " chemist", " did", " not", "\n"]
ROLES = ["rest", "shortcut", "constraint", "constraint", "answer"]


def sweep():
    rows = [
        {"layer": layer, "position": p, "token": token, "role": role, "effect": layer - p + 0.5}
        for layer in range(3)
        for p, (token, role) in enumerate(zip(TOKENS, ROLES, strict=True))
    ]
    return pd.DataFrame(rows)


def attribution(n_layers=12):
    rows = []
    rng = np.random.default_rng(0)
    for item in range(4):
        for which in ("item", "control"):
            fixed = {"item": f"i{item}", "family": f"f{item % 2}", "which": which, "order": "correct_first"}
            parts = [("embedding", -1, -1), ("unembedding_bias", -1, -1)]
            parts += [("head", layer, head) for layer in range(n_layers) for head in range(2)]
            parts += [(name, layer, -1) for layer in range(n_layers) for name in ("mlp", "attention_bias")]
            for name, layer, head in parts:
                rows.append({**fixed, "component": name, "layer": layer, "head": head, "contribution": rng.normal()})
    return pd.DataFrame(rows)


def test_tokens_are_written_out_and_roles_marked():
    table = sweep()
    table.loc[0, "effect"] = np.nan
    axes = plots.layer_by_token(table, title="one pair").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["The", "·chemist", "·did", "·not", "↵"]
    shown = axes.images[0].get_array()
    assert shown.mask[0, 0] and shown[2, 1] == pytest.approx(-0.5) and shown.shape == (5, 3)
    colours = [label.get_color() for label in axes.get_yticklabels()]
    assert colours[2] == colours[3] != colours[1] != colours[0]
    assert {"shortcut", "constraint"} <= {text.get_text().strip() for text in axes.texts}
    later = plots.layer_by_token(table, first=2).axes[0]
    assert len(later.get_yticklabels()) == 3


def test_a_sweep_of_two_pairs_or_without_tokens_is_refused():
    with pytest.raises(DataError, match="stands twice"):
        plots.layer_by_token(pd.concat([sweep(), sweep()]))
    with pytest.raises(DataError, match="layer by token"):
        plots.layer_by_token(sweep().drop(columns="token"))


def test_bars_add_up_run_by_run_and_in_the_figure():
    table = attribution()
    parts = grouped(table, blocks=5)
    keys = ["item", "which", "order"]
    whole = table.groupby(keys)["contribution"].sum()
    np.testing.assert_allclose(parts.groupby(keys)["contribution"].sum(), whole)
    names = list(parts.sort_values("rank")["part"].unique())
    assert names[0] == "embedding" and "MLPs, layers 0–2" in names and names.count("attention biases") == 1
    axes = plots.attribution_bars(table).axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    assert sum(widths[:-1]) == pytest.approx(widths[-1])
    with pytest.raises(DataError, match="attribution"):
        plots.attribution_bars(table.drop(columns="component"))


def test_the_head_grid_hatches_heads_that_do_not_exist():
    rows = [
        {"item": f"i{i}", "family": "f", "layer": layer, "head": head, "effect": np.nan if head > 1 else i + layer}
        for i in range(3)
        for layer in range(2)
        for head in range(4)
    ]
    axes = plots.head_grid(pd.DataFrame(rows), value="effect").axes[0]
    shown = axes.images[0].get_array()
    assert shown.mask[2:].all() and shown[0, 1] == pytest.approx(2.0)
    with pytest.raises(DataError, match="heads"):
        plots.head_grid(pd.DataFrame(rows).assign(head=-1), value="effect")


def test_the_largest_heads_are_listed_with_intervals():
    rng = np.random.default_rng(1)
    rows = [
        {"item": f"{family}{i}", "family": family, "layer": 0, "head": head, "role": role, "attention": 0.5,
         "ov_effect": 1.0, "contribution": rng.normal(3.0 if (head, role) == (2, "last") else 0.0, 0.1)}
        for family in "abc" for i in range(2) for head in range(4) for role in ("constraint", "last")
    ]  # fmt: skip
    found = plots.largest_heads(pd.DataFrame(rows), count=2).iloc[0]
    assert (found["head"], found["role"]) == (2, "last") and found["low"] < 3 < found["high"]


def test_effects_are_drawn_with_rings_where_they_differ():
    rows = [
        {"direction": "control_to_item", "site": "z", "layer": layer, "role": "last", "difference": value,
         "low": value - 1, "high": value + 1, "n_items": 8, "n_families": 6,
         "verdict": "differs" if value > 1 else "not distinguishable"}
        for layer, value in enumerate([0.1, 2.0, 0.3])
    ]  # fmt: skip
    axes = plots.effects_by_role(pd.DataFrame(rows), site="z").axes[0]
    assert list(axes.lines[0].get_ydata()) == [0.1, 2.0, 0.3]
    rings = [c for c in axes.collections if len(c.get_offsets()) == 1]
    assert rings and list(rings[-1].get_offsets()[0]) == [1.0, 2.0]
    with pytest.raises(DataError, match="against placebo"):
        plots.effects_by_role(pd.DataFrame(rows), site="q")
