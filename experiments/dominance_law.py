"""Does frequency decide where nothing else can? The law dominance = s log r with s = 1.

Prediction: on pairs of keys of one polarity, which the constraint fits equally and which were never shown together, the
log-odds of the more frequent key grow with the log prior ratio of its own relation with slope 1, measured in
probability space (.9 to 1.15); as least squares the slope may exceed 1 by the noise of the scores (.9 to 1.6); the
count ratio of the other relation adds under .25.

In the world that is false by construction, labels are permuted within each pair of options: counts are as before, but
say nothing about the answer.

    python experiments/dominance_law.py --out runs/dominance-law
"""

from __future__ import annotations

import sys
from pathlib import Path

from latentkt.results import Run
from latentkt.synthetic.checks import Check, expect
from latentkt.synthetic.experiment import experiment_main

PREDICTION = "On same-polarity pairs never shown together the slope of dominance on log r is 1 in probability space."
CONFIG = Path(__file__).parent / "configs" / "dominance_law.json"


def judge(run: Run) -> list[Check]:
    """The expectations of the law, pooled over seeds and relations."""
    same = {"cluster": "all", "pairing": "same"}
    return [
        expect(run, "slope in probability space", "slope_probability", 0.9, 1.15, **same),
        expect(run, "slope, least squares", "slope", 0.9, 1.6, **same),
        expect(run, "other-relation coefficient", "other_relation", -0.25, 0.25, **same),
    ]


if __name__ == "__main__":
    sys.exit(experiment_main(judge, prediction=PREDICTION, config=CONFIG))
