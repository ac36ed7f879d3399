"""A few concepts that come with the library, to try things with."""

from __future__ import annotations

from importlib import resources

from latentkt.phantom.concepts import Concept, load_concepts

__all__ = ["builtin_concepts"]


def builtin_concepts() -> list[Concept]:
    """Twenty-four concepts written for this library: twelve made ones and twelve real ones.

    They are there to try the commands with, not to measure a model by. What was searched for them stands in each.

    Example:
        >>> from collections import Counter
        >>> Counter(concept.made for concept in builtin_concepts())
        Counter({True: 12, False: 12})
    """
    with resources.as_file(resources.files("latentkt.phantom").joinpath("data", "concepts.jsonl")) as path:
        return load_concepts(path)
