"""How long a million models take: decomposed and certified, in batches, on one core.

Run: python experiments/benchmarks/theory_speed.py [--models N] [--batch N]

Models are random (2 keys, 2 tasks, 3 answers). Timed in CPU seconds of this process: checks of the input, posterior,
all terms of the odds identity with every quantity, two-sided bounds of ratio and margin, and the certificate from
priors with its threshold. Beside it, in the same run, the exact rational code on some of the same models, which serves
as the oracle too: the largest disagreement is printed.
"""

from __future__ import annotations

import argparse
import os
import time
from fractions import Fraction

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from latentkt.keytask import (
    Caps,
    ExactModel,
    KeyTaskModel,
    Limits,
    PathPair,
    certify,
    decompose,
    decompose_exact,
    margin_bounds,
    ratio_bounds,
)

PATHS = PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1)


def random_arrays(models: int, seed: int) -> list[np.ndarray]:
    """Priors, likelihoods and emissions, each with the models along the first axis."""
    rng = np.random.default_rng(seed)
    return [
        rng.dirichlet([1.0, 1.0], models),
        rng.dirichlet([1.0, 1.0], (models, 2)),
        rng.random((models, 2, 2)),
        rng.dirichlet([0.5] * 3, (models, 2, 2)),
    ]


def decompose_and_certify(arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dominance, lower bound of the margin, and the certificate from priors, of one batch."""
    found = decompose(KeyTaskModel.from_probabilities(*arrays), PATHS)
    q, e = found.quantities, found.quantities.emissions
    caps = Caps.own(e)
    ratio_bounds(q.masses, alpha_s=e.alpha_s, alpha_0=e.alpha_0, caps=caps)
    margin = margin_bounds(q.masses, alpha_s=e.alpha_s, alpha_0=e.alpha_0, caps=caps)
    limits = Limits(
        alpha_s=e.alpha_s,
        alpha_0=e.alpha_0,
        B_0=caps.B_0,
        C_1=caps.C_1,
        C_2=caps.C_2,
        eps_k=q.eps_k,
        delta_k=np.abs(found.terms["key_evidence"]),
        delta_t=np.maximum(np.abs(np.log(q.b_s)), np.abs(np.log(q.b_0))),
    )
    tasks = np.log(arrays[1])
    certificate = certify(
        log_rho_k=found.terms["key_prior_ratio"],
        log_odds_s=tasks[:, 1, 1] - tasks[:, 1, 0],
        log_odds_0=tasks[:, 0, 0] - tasks[:, 0, 1],
        limits=limits,
    )
    return found.dominance, margin.lower, certificate.gamma_lower


def exact_seconds(arrays: list[np.ndarray], models: int) -> tuple[float, float]:
    """CPU seconds a model of the rational code, and its largest disagreement in dominance with log space, nats."""
    rationals = []
    for i in range(models):
        rows = [np.array([Fraction(float(x)) for x in a[i].ravel()], dtype=object).reshape(a[i].shape) for a in arrays]
        rationals.append([rows[2] if n == 2 else rows[n] / rows[n].sum(-1, keepdims=True) for n in range(4)])
    start = time.process_time()
    ratios = [decompose_exact(ExactModel(*rows), PATHS).ratio for rows in rationals]
    seconds = (time.process_time() - start) / models
    floats = decompose_and_certify([a[:models] for a in arrays])[0]
    return seconds, max(abs(float(np.log(float(r))) - float(d)) for r, d in zip(ratios, floats, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=16_384)
    args = parser.parse_args()
    arrays = random_arrays(args.models, seed=0)
    decompose_and_certify([a[: args.batch] for a in arrays])  # imports and caches are not what is measured
    wall, cpu = time.perf_counter(), time.process_time()
    violations = worst = 0.0
    for first in range(0, args.models, args.batch):
        batch = [a[first : first + args.batch] for a in arrays]
        dominance, lower, certified = decompose_and_certify(batch)
        violations += int(((lower > 0) & (dominance < 0)).sum()) + int(((certified > 0) & (dominance < 0)).sum())
        worst = max(worst, float((certified - lower).max()))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    each, disagreement = exact_seconds(arrays, 200)
    print(f"{args.models:,} models of 2×2×3 decomposed and certified: {cpu:.2f} s CPU, {wall:.2f} s wall, one core")
    print(f"  certified although dominated: {violations:.0f}; certificate from priors over the bound: {worst:.2g}")
    print(f"  exact rational code: {each * 1e3:.2f} ms a model, {each / (cpu / args.models):,.0f} times as long")
    print(f"  largest disagreement in dominance over 200 models: {disagreement:.2g} nats")


if __name__ == "__main__":
    main()
