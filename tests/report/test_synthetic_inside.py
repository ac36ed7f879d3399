"""The section on trained networks keeps clusters apart, and its figures are means over networks."""

from itertools import product

import pandas as pd
import pytest

from latentkt.report.sections.synthetic_inside import section
from latentkt.results import create_run, load_run


@pytest.fixture
def run(tmp_path):
    rows = [
        {"family": f"network-{seed}", "kind": kind, "item": "0", "order": "correct_first"}
        | {"layer": layer, "seed": seed}
        for seed, kind, layer in product((0, 1, 2), ("independent", "cooccurring"), (0, 1))
    ]
    strength = {"independent": 1.0, "cooccurring": 10.0}
    lens = [
        row | {"which": which, "logp_correct": -1.0, "logp_shortcut": -2.0}
        | {"log_odds": (strength[row["kind"]] + row["seed"] if which == "item" else 0.0)}
        for row in rows for which in ("item", "control")
    ]  # fmt: skip
    patch = [
        row | {"site": site, "role": role, "effect": -strength[row["kind"]] * (role == "last") - other}
        for row in rows for site, other in (("attn_out", 0.0), ("mlp_out", 0.5)) for role in ("constraint", "last")
    ]  # fmt: skip
    attribution = [row | {"component": "mlp", "contribution": strength[row["kind"]]} for row in rows]
    metadata = {"kind": "synthetic-inside", "seeds": {}, "preset": "small"}
    with create_run(tmp_path / "run", metadata=metadata) as writer:
        for _ in writer.batches(("lens", "patch", "patch_shortcut", "attribution"), 1):
            for name, table in (
                ("lens", lens),
                ("patch", patch),
                ("patch_shortcut", patch),
                ("attribution", attribution),
            ):
                writer.write(name, 0, pd.DataFrame(table))
        writer.finish()
    return load_run(tmp_path / "run")


def test_clusters_stand_apart(run):
    shown = section(run)
    text = " ".join(finding.text for finding in shown.findings)
    assert "independent the item's polarity word, against the other one, moves the log-odds of traps by +2.00" in text
    assert "cooccurring the item's polarity word, against the other one, moves the log-odds of traps by +11.00" in text
    assert "mlp_out of layer 0, constraint token: -0.50" in text.replace("−", "-")
    cells = {row[:3]: row[3:] for row in shown.blocks[3].rows}
    assert cells["last", "attn_out", "0"][0].startswith(("-1.00", "−1.00"))
    assert cells["last", "attn_out", "0"][1].startswith(("-10.00", "−10.00"))
