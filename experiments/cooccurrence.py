"""Does a network use what it knows only where opposed keys have stood together?

Prediction: within one network, on traps (the shortcut more than six times as frequent) of which it answers both facts
rightly when asked, it prefers the shortcut in more than half of the traps of the cluster whose opposed keys never
co-occur, and in under a tenth of those of the cluster whose opposed keys do; and exchanging the constraint word moves
the log-odds more than twice as far in the second, in every network.

In the world that is false by construction, labels are permuted within each pair of options: opposed keys co-occur as
before, but the constraint word says nothing about the answer.

    python experiments/cooccurrence.py --out runs/cooccurrence
"""

from __future__ import annotations

import sys
from pathlib import Path

from latentkt.results import Run
from latentkt.synthetic.checks import Check, expect, patch_ratios
from latentkt.synthetic.experiment import experiment_main

PREDICTION = "Traps are fallen into where opposed keys never co-occurred and not where they did, the facts being known."
CONFIG = Path(__file__).parent / "configs" / "cooccurrence.json"


def judge(run: Run) -> list[Check]:
    """The expectations, pooled over seeds and relations, on pairs never shown together."""
    error = "trap_error_given_both_probes"
    return [
        expect(run, "trap error, both probes right, independent", error, 0.5, cluster="independent"),
        expect(run, "trap error, both probes right, co-occurring", error, at_most=0.1, cluster="cooccurring"),
        *patch_ratios(run),
    ]


if __name__ == "__main__":
    sys.exit(experiment_main(judge, prediction=PREDICTION, config=CONFIG))
