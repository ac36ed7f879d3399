"""Figures of predictions, knockout and faithfulness hold the table's numbers, and refuse what they cannot draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentkt import plots
from latentkt.errors import DataError

FAMILIES = {f"i{n}": f"f{n % 3}" for n in range(6)}


def predictions(method="atp", *, slope=1.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for item, family in FAMILIES.items():
        for n in range(40):
            predicted = rng.normal(0, 1)
            run = n < 12
            rows.append(
                {"pair": f"{item} control_to_item", "item": item, "family": family, "kind": "action", "order": "o",
                 "direction": "control_to_item", "method": method, "site": "z", "layer": n // 4, "head": n % 4,
                 "role": "last", "sender": f"z.0.{n % 4}", "receiver": "logits", "unchanged": False,
                 "predicted": predicted, "exact": slope * predicted + rng.normal(0, 0.01) if run else np.nan,
                 "is_top": n < 4, "is_sampled": 2 <= n < 12, "completeness_error": 0.25, "kept_share": 0.7}
            )  # fmt: skip
    return pd.DataFrame(rows)


def cuts(*, planted=-2.0):
    """One edge carries in layer 3, backward edges and an edge that does not exist stand beside it."""
    edges = [("constraint", "last"), ("shortcut", "last"), ("constraint", "shortcut"), ("option_correct", "last")]
    rng = np.random.default_rng(1)
    rows = []
    for item, family in FAMILIES.items():
        for which in ("item", "control"):
            for read, reading in edges:
                for layer in range(6):
                    effect = planted if (read, reading, layer, which) == ("constraint", "last", 3, "item") else 0.0
                    effect = np.nan if read == "option_correct" else effect + rng.normal(0, 0.02)
                    rows.append(
                        {"item": item, "family": family, "which": which, "order": "o", "from_role": read,
                         "to_role": reading, "layer": layer, "window": 1, "head": -1, "effect": effect,
                         "metric": "log_odds", "sinks": False, "n_sinks_left_out": 1, "no_cut_error": 1e-6}
                    )  # fmt: skip
    return pd.DataFrame(rows)


def curves(*, of="nodes", gap=True):
    rows = []
    for number, (item, family) in enumerate(FAMILIES.items()):
        for direction in ("control_to_item", "item_to_control"):
            for ranking, power in (("atp", 0.3), ("random", 3.0)):
                for curve in ("keep", "remove"):
                    for share in (0.0, 0.01, 0.05, 0.2, 1.0):
                        value = share**power if curve == "keep" else 1 - share**power
                        value += 0.01 * number * (0 < share < 1)
                        rows.append(
                            {"pair": f"{item} {direction}", "item": item, "family": family, "direction": direction,
                             "of": of, "ranking": ranking, "ranked_on": "pair" if ranking == "atp" else "nothing",
                             "ablation": "source_run", "curve": curve, "n_all": 300, "share": share,
                             "faithfulness": value if gap else np.nan, "area": 0.5}
                        )  # fmt: skip
    return pd.DataFrame(rows)


def test_points_are_the_patches_that_were_run():
    both = pd.concat([predictions(), predictions("eap", seed=1)], ignore_index=True)
    figure = plots.predicted_against_exact(both)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["attribution patching", "edge attribution"]
    sample, top = figure.axes[0].collections
    run = both[(both["method"] == "atp") & both["exact"].notna()]
    assert len(sample.get_offsets()) == (~run["is_top"]).sum() and len(top.get_offsets()) == run["is_top"].sum()
    np.testing.assert_allclose(top.get_offsets(), run.loc[run["is_top"], ["predicted", "exact"]])
    with pytest.raises(DataError, match="exact effect"):
        plots.predicted_against_exact(both.assign(exact=np.nan))
    with pytest.raises(DataError, match="lacks columns"):
        plots.predicted_against_exact(both.drop(columns="is_top"))


def test_arcs_go_between_roles_with_the_strongest_layer():
    table = cuts()
    best = plots.strongest_cuts(table)
    first = best.iloc[0]
    assert (first["from_role"], first["to_role"], first["layer"], first["which"]) == ("constraint", "last", 3, "item")
    assert first["value"] == pytest.approx(-2, abs=0.05) and first["low"] < first["value"] < first["high"]
    assert "option_correct" not in set(best["from_role"])
    figure = plots.knockout_edges(table)
    items, controls = figure.axes
    assert len(items.patches) == len(controls.patches) == 3 and "window 1" in figure.get_suptitle()
    texts = [text.get_text() for text in items.texts]
    assert any("-2.0 L3" in text for text in texts) and not any(" L" in text.get_text() for text in controls.texts)
    widest = max(items.patches, key=lambda patch: patch.get_linewidth())
    assert widest.get_edgecolor()[:3] != items.patches[0].get_edgecolor()[:3] or widest.get_linewidth() > 4
    assert items.get_ylim()[0] < -0.5  # the arc that goes back lies below
    with pytest.raises(DataError, match="edges that exist"):
        plots.knockout_edges(table.assign(effect=np.nan))


def test_cuts_by_layer_show_the_strongest_edges():
    axes = plots.knockout_by_layer(cuts(), count=2).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert labels[0] == "constraint → last" and len(labels) == 2
    drawn = axes.lines[0].get_ydata()
    assert np.argmin(drawn) == 3 and drawn.min() == pytest.approx(-2, abs=0.05)


def test_the_curve_holds_means_and_names_what_stands_in():
    figure = plots.faithfulness_curve(curves())
    assert "source run" in figure.get_suptitle() and len(figure.axes) == 2
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    kept = lines["keep by atp"]
    np.testing.assert_allclose(kept.get_xdata(), [0, 0.01, 0.05, 0.2, 1])
    assert kept.get_ydata()[2] == pytest.approx(0.05**0.3 + 0.025)
    assert {"keep by random", "remove by atp", "remove by random"} <= set(lines)
    with pytest.raises(DataError, match="half a nat"):
        plots.faithfulness_curve(curves(gap=False))
    with pytest.raises(DataError, match="edges"):
        plots.faithfulness_curve(curves(), of="edges")
