"""Time and memory of the whole analysis: 2,925 questions × 8 settings, names and profiles.

    python experiments/benchmarks/trapqa_analysis.py

Records with the paper's margins (and a made-up confidence and order, so that every table is there) are written to a
file by another process; then reading, analysing and writing all tables are timed apart, in CPU seconds of this process,
with its peak memory. Reading the same lines with `json.loads` alone is timed beside, for the scale.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1]
WRITE = """
import sys
import numpy as np
from paper_records import build, read_paper
frame, rng = build(read_paper()), np.random.default_rng(0)
frame["order"] = np.where(rng.random(len(frame)) < 0.5, "correct_first", "shortcut_first")
frame["confidence"] = rng.integers(0, 101, len(frame))
lines = [dict(row, raw="The answer is the first of the two. " * 4) for row in frame.to_dict("records")]
import json
clean = ({k: None if v != v else v for k, v in row.items()} for row in lines)
open(sys.argv[1], "w").writelines(json.dumps(row) + "\\n" for row in clean)
"""


def main() -> None:
    """Print the times, their sum, and the peak of memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "records.jsonl")
        subprocess.run([sys.executable, "-c", WRITE, str(path)], check=True, cwd=EXPERIMENTS)
        marks = [("start", time.process_time())]
        from latentkt.trapqa.analysis import analyse, read_records, write_analysis

        records = read_records(path)
        marks.append(("read and check", time.process_time()))
        analysis = analyse(records)
        marks.append(("analyse", time.process_time()))
        write_analysis(analysis, Path(folder, "out"))
        marks.append(("write tables", time.process_time()))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for (_, before), (name, after) in itertools.pairwise(marks):
            print(f"{name:<16} {after - before:5.2f} CPU s")
        whole = marks[-1][1] - marks[0][1]
        print(
            f"all              {whole:5.2f} CPU s, imports included; peak {peak:.0f} MB; {len(records.frame):,} records"
        )
        before = time.process_time()
        with path.open("rb") as file:
            count = sum(1 for line in file if json.loads(line))
        alone = time.process_time() - before
        print(f"json.loads alone {alone:5.2f} CPU s for {count:,} lines; all / alone = {whole / alone:.1f}")


if __name__ == "__main__":
    main()
