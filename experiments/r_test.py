"""Does a trained network's log-odds carry log R? The printed Theorem 3.4 says no, the repaired one says yes.

Both are right about a corpus: the coefficient c_R of log R is decided by how ambiguous documents arise. So networks are
trained on two corpora with the same prior, prompts and answers:

- pair-neutral: Assumptions 3.1 and 3.2 hold exactly. Prediction: c_R = 1 (path binding).
- path-neutral: the prompt says nothing about the path, and 3.1(ii) fails. Prediction: c_R = 0.

Each prediction is also held against the other corpus, where it is false by construction and must be refuted.
Exchanging the roles of shortcut and correct would be no control: dominance and regressors change sign together.

This tests whether a network follows its corpus. It does not say which corpus real text resembles.

    python experiments/r_test.py --out runs/r-test
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from latentkt.synthetic import run_r_test, verdict

CONFIG = Path(__file__).parent / "configs" / "r_test.json"


def main() -> int:
    """Run both corpora and print the verdicts; exit code 1 if a prediction is not refuted on the other corpus."""
    parser = argparse.ArgumentParser(description="c_R is 1 on the pair-neutral corpus and 0 on the path-neutral one.")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    config = json.loads(args.config.read_text(encoding="utf-8"))
    run = run_r_test(seeds=config["seeds"], settings=config["settings"], out=args.out / "run", resume=args.resume)
    verdicts = verdict(run.tables["r_fits"])
    for item in verdicts:
        print(item)
    content = {"config": config, "verdicts": [asdict(item) for item in verdicts]}
    (args.out / "verdict.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    crossed = [item.verdict for item in verdicts if item.prediction != item.corpus]
    return 0 if all(found == "refuted" for found in crossed) else 1


if __name__ == "__main__":
    sys.exit(main())
