"""How long `import latentkt` takes: whole processes, against an empty interpreter, in one run.

python experiments/benchmarks/import_time.py [--repeats 15]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time


def median_seconds(code: str, repeats: int) -> float:
    """Median wall time of a fresh interpreter that runs `code`."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Print the medians and the difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    empty = median_seconds("pass", repeats)
    package = median_seconds("import latentkt", repeats)
    command = median_seconds("import latentkt.cli", repeats)
    print(f"empty interpreter {empty:.3f} s, import latentkt {package:.3f} s, the command line {command:.3f} s")
    print(f"import latentkt alone: {package - empty:.3f} s (median of {repeats})")


if __name__ == "__main__":
    main()
