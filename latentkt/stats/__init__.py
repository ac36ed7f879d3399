"""Intervals, permutation and exact tests, multiple comparison.

The unit is the item, the cluster is its family: with few families an interval says how far the families differ, so the
number of items does not narrow it. Every function takes plain numbers or arrays; every random one takes `rng`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.stats.clusters import ClusterInterval, cluster_interval, paired_interval
    from latentkt.stats.difficulty import Difficulty, fit_difficulty, poisson_binomial
    from latentkt.stats.exact import (
        ExactTest,
        MantelHaenszel,
        binomial_test,
        fisher_test,
        mantel_haenszel,
        mcnemar_test,
    )
    from latentkt.stats.interval import Interval
    from latentkt.stats.means import mean_interval
    from latentkt.stats.multiple import benjamini_hochberg, holm
    from latentkt.stats.permutation import MaxT, SignFlip, sign_flip, sign_flip_max_t
    from latentkt.stats.proportions import clopper_pearson, wilson
    from latentkt.stats.ranking import auroc
    from latentkt.stats.shares import clustered_mantel_haenszel, clustered_ratio, clustered_share, wilson_ends
    from latentkt.stats.subsets import SubsetTest, subset_test

_HOME = {
    "ClusterInterval": "clusters",
    "Difficulty": "difficulty",
    "ExactTest": "exact",
    "Interval": "interval",
    "MantelHaenszel": "exact",
    "MaxT": "permutation",
    "SignFlip": "permutation",
    "SubsetTest": "subsets",
    "auroc": "ranking",
    "benjamini_hochberg": "multiple",
    "binomial_test": "exact",
    "clopper_pearson": "proportions",
    "cluster_interval": "clusters",
    "clustered_mantel_haenszel": "shares",
    "clustered_ratio": "shares",
    "clustered_share": "shares",
    "fisher_test": "exact",
    "fit_difficulty": "difficulty",
    "holm": "multiple",
    "mantel_haenszel": "exact",
    "mcnemar_test": "exact",
    "mean_interval": "means",
    "paired_interval": "clusters",
    "poisson_binomial": "difficulty",
    "sign_flip": "permutation",
    "sign_flip_max_t": "permutation",
    "subset_test": "subsets",
    "wilson": "proportions",
    "wilson_ends": "shares",
}

__all__ = [
    "ClusterInterval",
    "Difficulty",
    "ExactTest",
    "Interval",
    "MantelHaenszel",
    "MaxT",
    "SignFlip",
    "SubsetTest",
    "auroc",
    "benjamini_hochberg",
    "binomial_test",
    "clopper_pearson",
    "cluster_interval",
    "clustered_mantel_haenszel",
    "clustered_ratio",
    "clustered_share",
    "fisher_test",
    "fit_difficulty",
    "holm",
    "mantel_haenszel",
    "mcnemar_test",
    "mean_interval",
    "paired_interval",
    "poisson_binomial",
    "sign_flip",
    "sign_flip_max_t",
    "subset_test",
    "wilson",
    "wilson_ends",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
