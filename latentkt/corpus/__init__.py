"""From text to priors: read a corpus, match keys and tasks, count, merge, estimate priors with uncertainty."""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "Counts": "counts",
    "Form": "patterns",
    "InfiniGramClient": "infinigram",
    "InfiniGramIndex": "infinigram",
    "LogRatio": "ratio",
    "Matching": "matching",
    "Patterns": "patterns",
    "PhraseCounts": "phrases",
    "PriorRatio": "priors",
    "Priors": "priors",
    "concordance": "hits",
    "count_corpus": "local",
    "count_phrases": "phrases",
    "count_texts": "counter",
    "find_patterns": "patterns",
    "good_turing_missing_mass": "priors",
    "load_counts": "counts",
    "load_patterns": "patterns",
    "log_prior_ratio": "priors",
    "path_name": "patterns",
    "read_texts": "texts",
    "estimate_priors": "priors",
    "split_path": "patterns",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
