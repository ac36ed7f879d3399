"""Do the `auto` intervals of log prior ratios cover? Negative-binomial counts over clusters, fitted to real books.

Mentions of a person or a relation are counted in each book of a corpus; a negative-binomial law is fitted to each, and
pairs of such laws with a known ratio of means are sampled over and over. Reported by the number of clusters that
support a pair: coverage of nominal 95 % intervals, and their width against a brute-force bootstrap of the clusters.

    python experiments/corpus_intervals.py gutenberg.jsonl.zst --samples 3000
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus import Patterns
from latentkt.corpus.ratio import LogRatio, log_ratio
from latentkt.corpus.tally import Tally

NAMES = (
    "darwin", "aristotle", "euclid", "galileo", "newton", "franklin", "faraday", "pascal", "kepler", "huxley", "plato",
    "socrates", "lamarck", "humboldt", "evolution", "geometry", "electricity", "telescope", "astronomy", "mathematics",
    "gravitation", "heredity", "magnetism", "chemistry",
)  # fmt: skip
BANDS = ((1, 4), (5, 9), (10, 19), (20, 39), (40, 10_000))
BRUTE_FORCE = 4000


def book_counts(path: Path, work: Path) -> NDArray[np.int64]:
    """Occurrences of each name in each book, shape (books, names)."""
    from latentkt.corpus.local import count_corpus

    patterns = Patterns.from_dict({"keys": {name: [name] for name in NAMES}})
    tally = count_corpus([str(path)], patterns, str(work), cluster="source").tally
    out = np.zeros((len(tally.clusters), len(NAMES)), np.int64)
    at = tally.cells[tally.columns] < len(NAMES)
    out[tally.rows[at], tally.cells[tally.columns][at]] = tally.values[at]
    return out


def fit(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and size of a negative-binomial law: maximum likelihood (the mean is the sample mean)."""
    from scipy import optimize, stats

    mean = counts.mean()

    def loss(log_size: float) -> float:
        size = np.exp(log_size)
        return -float(stats.nbinom.logpmf(counts, size, size / (size + mean)).sum())

    return float(mean), float(np.exp(optimize.minimize_scalar(loss, bounds=(-7, 4), method="bounded").x))


def sample(rng: np.random.Generator, laws: list[tuple[float, float]], books: int) -> tuple[NDArray[np.int64], float]:
    """Counts of two paths by cluster, and the true log ratio of their means."""
    rows = rng.choice(len(laws), 2, replace=False)
    columns = [rng.negative_binomial(size, size / (size + mean), books) for mean, size in (laws[i] for i in rows)]
    return np.stack(columns, axis=1), float(np.log(laws[rows[0]][0] / laws[rows[1]][0]))


def interval(counts: NDArray[np.int64], method: str = "auto") -> LogRatio:
    """The library's interval from counts by cluster."""
    row, cell = np.nonzero(counts)
    clusters = np.arange(len(counts), dtype=np.uint64)
    return log_ratio(Tally.build(clusters, row, cell, counts[row, cell]), 0, 1, method=method)


def brute_force(rng: np.random.Generator, counts: NDArray[np.int64]) -> tuple[float, float]:
    """Percentile interval of 4,000 resamples of the clusters."""
    supporting = counts[counts.any(axis=1)]
    rest = len(counts) - len(supporting)
    shares = np.append(np.full(len(supporting), 1 / len(counts)), rest / len(counts))
    weights = rng.multinomial(len(counts), shares / shares.sum(), BRUTE_FORCE)[:, :-1]
    sums = weights @ supporting
    low, high = np.percentile(np.log((sums[:, 0] + 0.5) / (sums[:, 1] + 0.5)), [2.5, 97.5])
    return float(low), float(high)


def simulate(laws: list[tuple[float, float]], *, samples: int, seed: int = 0) -> NDArray[np.float64]:
    """Rows: supporting clusters, covered by auto, by multinomial, by brute force, width ratio auto to brute force."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < samples:
        counts, truth = sample(rng, laws, int(rng.choice([20, 40, 80, 175, 350])))
        if not counts.any():
            continue
        auto, plain = interval(counts), interval(counts, "multinomial")
        low, high = brute_force(rng, counts)
        width = (auto.high - auto.low) / (high - low) if high > low and not auto.censored else np.nan
        covered = [
            one <= truth <= other for one, other in ((auto.low, auto.high), (plain.low, plain.high), (low, high))
        ]
        rows.append([auto.clusters, *covered, width, auto.censored])
    return np.array(rows, float)


def table(rows: NDArray[np.float64]) -> list[dict[str, float]]:
    """Coverage and median width by number of supporting clusters."""
    out = []
    for low, high in BANDS:
        band = rows[(rows[:, 0] >= low) & (rows[:, 0] <= high)]
        if len(band):
            auto, plain, brute = band[:, 1:4].mean(axis=0)
            out.append({"from": low, "to": high, "samples": len(band), "auto": auto, "multinomial": plain,
                        "brute_force": brute, "width": float(np.nanmedian(band[:, 4])) if np.isfinite(band[:, 4]).any()
                        else float("nan"), "censored": band[:, 5].mean()})  # fmt: skip
    return out


def main() -> None:
    """Print the table."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = book_counts(options.corpus, Path(folder) / "counts")
    laws = [fit(column) for column in counts.T if (column > 0).sum() >= 5]
    print(
        f"{len(laws)} laws over {len(counts)} books; size (smaller is burstier): {sorted(round(s, 3) for _, s in laws)}"
    )
    for row in table(simulate(laws, samples=options.samples, seed=options.seed)):
        print({key: round(value, 3) for key, value in row.items()})


if __name__ == "__main__":
    main()
