"""Intervals, permutation and exact tests, multiple comparison.

The unit is the item, the cluster is its family: with few families an interval says how far the families differ, so the
number of items does not narrow it. Every function takes plain numbers or arrays; every random one takes `rng`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.stats.clusters import ClusterInterval, cluster_interval, paired_interval
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

_HOME = {
    "ClusterInterval": "clusters",
    "ExactTest": "exact",
    "Interval": "interval",
    "MantelHaenszel": "exact",
    "MaxT": "permutation",
    "SignFlip": "permutation",
    "benjamini_hochberg": "multiple",
    "binomial_test": "exact",
    "clopper_pearson": "proportions",
    "cluster_interval": "clusters",
    "fisher_test": "exact",
    "holm": "multiple",
    "mantel_haenszel": "exact",
    "mcnemar_test": "exact",
    "mean_interval": "means",
    "paired_interval": "clusters",
    "sign_flip": "permutation",
    "sign_flip_max_t": "permutation",
    "wilson": "proportions",
}

__all__ = [
    "ClusterInterval",
    "ExactTest",
    "Interval",
    "MantelHaenszel",
    "MaxT",
    "SignFlip",
    "benjamini_hochberg",
    "binomial_test",
    "clopper_pearson",
    "cluster_interval",
    "fisher_test",
    "holm",
    "mantel_haenszel",
    "mcnemar_test",
    "mean_interval",
    "paired_interval",
    "sign_flip",
    "sign_flip_max_t",
    "wilson",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
