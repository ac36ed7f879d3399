"""The top pairs of 9,090 people out of 41.3 million, in bounded memory.

    python experiments/benchmarks/hard_pairs.py [PEOPLE] [DIMENSIONS]

Synthetic embeddings around 300 centres (so that scores have a tail, as those of people do), tag counts 1 to 12. Times
`hard_pairs` on one thread against two plain ways on the same data: the whole matrix of scores, then a partition
(once, at 9,090 people); and a loop over pairs (at 600 people, as pairs a second). Peak memory is that of the process
beyond what it held before.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from latentkt.trapqa.build.hard_pairs import hard_pairs, wanted_pairs


def people(n, dimensions, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(300, dimensions))
    vectors = centres[rng.integers(300, size=n)] + 1.2 * rng.normal(size=(n, dimensions))
    return vectors.astype(np.float32), rng.integers(1, 13, size=n)


def whole(vectors, tags, top):
    """All scores at once."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    smaller = np.minimum(tags[:, None], tags[None]).astype(np.float32)
    scores = (units @ units.T) * (smaller / (smaller + np.float32(np.median(tags))))
    values = scores[np.triu_indices(len(tags), 1)]
    return np.sort(np.partition(values, len(values) - top)[-top:])[::-1]


def loop(vectors, tags, top):
    """One pair after the other."""
    norms, median = np.linalg.norm(vectors, axis=1), float(np.median(tags))
    found = []
    for a in range(len(tags)):
        for b in range(a + 1, len(tags)):
            m = min(tags[a], tags[b])
            found.append(vectors[a] @ vectors[b] / (norms[a] * norms[b]) * m / (m + median))
    return np.sort(found)[::-1][:top]


def timed(work, *arguments):
    start = time.process_time()
    result = work(*arguments)
    return result, time.process_time() - start


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 9090
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else 384
    with threadpool_limits(1):
        small, tags = people(600, dimensions)
        reference, slow = timed(loop, small, tags, 100)
        ours = hard_pairs(small, tags, top=100)
        print(f"loop, 600 people: {600 * 599 / 2 / slow:,.0f} pairs a CPU second; largest difference "
              f"{np.abs(reference - ours.score).max():.1e}")  # fmt: skip
        vectors, tags = people(n, dimensions)
        top = wanted_pairs(n, fraction=1e-4)
        before = peak()
        ours, fast = timed(lambda: hard_pairs(vectors, tags, top=top))
        print(f"hard_pairs, {n} people, {dimensions} dimensions: top {top} of {ours.n_pairs:,} pairs in "
              f"{fast:.1f} CPU s, {ours.n_pairs / fast:,.0f} a CPU second, {peak() - before:.0f} MiB more")  # fmt: skip
        before = peak()
        values, plain = timed(whole, vectors, tags, top)
        print(f"whole matrix: {plain:.1f} CPU s, {peak() - before:.0f} MiB more; largest difference "
              f"{np.abs(values - ours.score).max():.1e}")  # fmt: skip
        print(f"ratio whole matrix / hard_pairs: {plain / fast:.1f} in time")


if __name__ == "__main__":
    main()
