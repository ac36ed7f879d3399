"""Do the `auto` intervals of log prior ratios cover? Counts over clusters as bursty as those of real books.

Mentions of a person or a relation are counted in each book of a corpus. Two worlds are made of them, in which the ratio
is known: a negative-binomial law fitted to each name, pairs of which are sampled over and over; and the books
themselves, drawn with replacement, in which names keep the company that they keep. Reported by the number of clusters
that support a pair, and by the number that hold its rarer path: coverage of nominal 95 % intervals with its own
interval, and their median width against a brute-force bootstrap of the clusters (each `--every` th sample).

    python experiments/corpus_intervals.py gutenberg.jsonl.zst --samples 12000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus import Patterns
from latentkt.corpus.ratio import LogRatio, log_ratio
from latentkt.corpus.tally import Tally
from latentkt.stats import wilson

NAMES = (
    "darwin", "aristotle", "euclid", "galileo", "newton", "franklin", "faraday", "pascal", "kepler", "huxley", "plato",
    "socrates", "lamarck", "humboldt", "evolution", "geometry", "electricity", "telescope", "astronomy", "mathematics",
    "gravitation", "heredity", "magnetism", "chemistry",
)  # fmt: skip
BANDS = ((1, 4), (5, 9), (10, 19), (20, 39), (40, 10_000))
RARER = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 10_000))
BOOKS = (20, 40, 80, 175, 350)
BRUTE_FORCE = 4000
Draw = Callable[[np.random.Generator], tuple[NDArray[np.int64], float]]


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


def from_laws(laws: list[tuple[float, float]]) -> Draw:
    """Counts of two paths by cluster from independent laws, and the true log ratio of their means."""

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.int64], float]:
        books = int(rng.choice(BOOKS))
        rows = rng.choice(len(laws), 2, replace=False)
        columns = [rng.negative_binomial(size, size / (size + mean), books) for mean, size in (laws[i] for i in rows)]
        return np.stack(columns, axis=1), float(np.log(laws[rows[0]][0] / laws[rows[1]][0]))

    return draw


def from_books(counts: NDArray[np.int64]) -> Draw:
    """Real books drawn with replacement, two names in each, and the log ratio of the names' totals."""

    def draw(rng: np.random.Generator) -> tuple[NDArray[np.int64], float]:
        pair = counts[:, rng.choice(counts.shape[1], 2, replace=False)]
        return pair[rng.integers(0, len(pair), int(rng.choice(BOOKS)))], float(np.log(np.divide(*pair.sum(axis=0))))

    return draw


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


def simulate(draw: Draw, *, samples: int, seed: int = 0, every: int = 1) -> NDArray[np.float64]:
    """What the intervals of many samples did.

    Columns: supporting clusters, clusters of the rarer path, covered by auto, by multinomial, by brute force, width
    ratio auto to brute force, censored. NaN where brute force was not run, or has no width to compare.
    """
    rng = np.random.default_rng(seed)
    rows: list[list[float]] = []
    while len(rows) < samples:
        counts, truth = draw(rng)
        if not counts.any():
            continue
        auto, plain = interval(counts), interval(counts, "multinomial")
        brute, width = np.nan, np.nan
        if len(rows) % every == 0:
            low, high = brute_force(rng, counts)
            brute = float(low <= truth <= high)
            width = (auto.high - auto.low) / (high - low) if high > low and not auto.censored else np.nan
        covered = [float(one.low <= truth <= one.high) for one in (auto, plain)]
        rows.append([auto.clusters, (counts > 0).sum(axis=0).min(), *covered, brute, width, auto.censored])
    return np.array(rows, float)


def table(rows: NDArray[np.float64], *, by: int = 0) -> list[dict[str, float]]:
    """Coverage and median width by number of supporting clusters (`by` 0) or of the rarer path's clusters (1)."""
    out = []
    for low, high in (BANDS, RARER)[by]:
        band = rows[(rows[:, by] >= low) & (rows[:, by] <= high)]
        if len(band):
            auto, plain = (wilson(int(column.sum()), len(band)) for column in (band[:, 2], band[:, 3]))
            brute, widths = band[:, 4][np.isfinite(band[:, 4])], band[:, 5][np.isfinite(band[:, 5])]
            out.append({"from": low, "to": high, "samples": len(band), "auto": auto.value, "low": auto.low,
                        "high": auto.high, "multinomial": plain.value, "brute_n": len(brute),
                        "brute_force": float(brute.mean()) if len(brute) else np.nan,
                        "width": float(np.median(widths)) if len(widths) else np.nan,
                        "censored": float(band[:, 6].mean())})  # fmt: skip
    return out


def main() -> None:
    """Print the tables."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--samples", type=int, default=12_000)
    parser.add_argument("--every", type=int, default=6, help="brute force for each Nth sample")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = book_counts(options.corpus, Path(folder) / "counts")
    laws = [fit(column) for column in counts.T if (column > 0).sum() >= 5]
    print(
        f"{len(laws)} laws over {len(counts)} books; size (smaller is burstier): {sorted(round(s, 3) for _, s in laws)}"
    )
    for world, draw in (("fitted laws", from_laws(laws)), ("real books", from_books(counts))):
        rows = simulate(draw, samples=options.samples, seed=options.seed, every=options.every)
        for by, what in enumerate(("supporting clusters", "clusters of the rarer path")):
            print(f"{world}, by {what}" + (", 10 or more supporting clusters" if by else ""))
            for row in table(rows[rows[:, 0] >= 10] if by else rows, by=by):
                print({key: round(value, 3) for key, value in row.items()})


if __name__ == "__main__":
    main()
