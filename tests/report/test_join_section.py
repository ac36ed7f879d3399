"""The section on priors says what the table says: slope, rivals, co-occurrence, certificates, what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from latentkt.report import build
from latentkt.report.sections.join import section
from latentkt.results import create_run, load_run


@pytest.fixture(autouse=True)
def _fewer_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latentkt.join.verdict.REPLICATES", 100)


def joined(*, slope: float, n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 2, n)
    low, high = x - 0.8, x + 0.8
    low[0], high[1] = -np.inf, np.inf
    noise = rng.normal(0, 0.3, n)
    noise -= np.polyval(np.polyfit(x, noise, 1), x)
    together = rng.normal(0, 1, n)
    together -= np.polyval(np.polyfit(noise, together, 1), noise)
    dominance = slope * x + noise
    censored = ~np.isfinite(low) | ~np.isfinite(high)
    table = pd.DataFrame({"item": [f"i{i:02d}" for i in range(n)], "log_prior_ratio": x, "se": 0.4, "low": low,
                          "high": high, "censored": censored, "dominance": dominance, "dominance_se": 0.2,
                          "family": [f"f{i % 10}" for i in range(n)], "log_key_ratio": rng.normal(0, 1, n),
                          "answer_length": rng.integers(-2, 3, n), "log_key_pair": together, "plotted": True,
                          "why_not": "", "gamma_lower": np.linspace(0.4, -0.9, n), "margin": np.linspace(2, -3, n),
                          "certified": np.linspace(2, -3, n) > 0})  # fmt: skip
    table.loc[2, ["plotted", "why_not", "gamma_lower"]] = [False, "neither path occurs", np.nan]
    table["certified"] &= table["gamma_lower"].notna()
    return table


def run_with(table: pd.DataFrame, folder: Path, **options: object) -> Path:
    with create_run(folder, metadata={"options": {"corpus": ["books.jsonl"], **options}}) as run:
        run.save("join", table)
        run.finish()
    return folder


def test_a_prior_that_explains(tmp_path: Path) -> None:
    table = joined(slope=1.0)
    made = section(load_run(run_with(table, tmp_path / "run")))
    assert made is not None
    explained, together, certified = made.findings
    assert explained.found is True and "on 29 items; the predicted +1 lies inside" in explained.text
    assert together.found is False and "(29 items): not distinguishable from no effect." in together.text
    proved = table[table["certified"]]
    right = int((proved["dominance"] > 0).sum())
    assert f"Of 29 items with counted paths the priors alone certify {len(proved)}" in certified.text
    assert certified.text.endswith(f"Measured dominance is above 0 in {right} of these {len(proved)}.")
    picture, rivals, certificates, listed, note = made.blocks
    assert picture.caption.startswith("One point an item.")
    assert "over 10 families" in rivals.caption and len(rivals.rows) == 4 and all("[" in row[1] for row in rivals.rows)
    assert len(certificates.rows) == 12 and "The first 12 of 29" in certificates.caption
    first, second = certificates.rows[:2]
    assert first[0] == "i00" and "[−∞, " in first[1] and ", +∞]" in second[1]
    assert listed.rows == (("neither path occurs", "1", "i02"),)
    assert note.text.startswith("Counted: books.jsonl. The corpus counted here is not the model's training data")


def test_a_prior_that_does_not(tmp_path: Path) -> None:
    table = joined(slope=0.0).drop(index=2).assign(log_key_pair=np.nan)
    folder = run_with(table, tmp_path / "run", training_corpus=True)
    made = section(load_run(folder))
    assert made is not None
    explained, together, _ = made.findings
    assert explained.found is False and "does not explain these items" in explained.text
    assert together.found is None and "No effect of keys that occur together" in together.text
    *_, certificates, note = made.blocks  # nothing is listed, so there is no list
    assert "certificate" in certificates.caption and note.text == "Counted: books.jsonl."
    page = build(load_run(folder), out=tmp_path / "page.html").read_text()
    assert page.index("does not explain these items") < page.index('id="join"')  # said at the top too
