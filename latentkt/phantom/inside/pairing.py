"""Pairs of concepts for each contrast, found from their tokens alone, before the model is run on any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentkt.errors import InputError
from latentkt.phantom.inside.activations import Frame, encode_concepts, mean_log_frequency, tokens_of
from latentkt.phantom.inside.contrasts import Contrast
from latentkt.phantom.inside.matching import balance, covariates, match_concepts
from latentkt.phantom.inside.options import InsideOptions

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.phantom.concepts import Concept

__all__ = ["FEWEST_PAIRS", "Paired", "pair_concepts"]

FEWEST_PAIRS = 20
"""Fewest matched pairs of a contrast that is probed."""


@dataclass(frozen=True, eq=False)
class Paired:
    """Contrasts that can be told, as ids of concepts.

    Attributes:
        pairs: Contrast -> ids labelled 1 and their partners, labelled 0.
        tables: Balance of each contrast.
        skipped: What was left out: item, stage, reason.
    """

    pairs: dict[str, tuple[list[str], list[str]]]
    tables: list[pd.DataFrame]
    skipped: list[tuple[str, str, str]]


def pair_concepts(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    counts: Mapping[int, int],
    frame: Frame,
    options: InsideOptions,
    contrasts: Sequence[Contrast],
) -> Paired:
    """Match the two sides of each contrast.

    Args:
        handle: The model, for its tokenizer.
        concepts: Verified concepts.
        counts: How often each token stands in a corpus.
        frame: The question in which concepts are read.
        options: Pairs, caliper and seed.
        contrasts: What is told apart.

    Raises:
        InputError: Not one contrast has enough pairs.
    """
    found = Paired({}, [], [])
    for contrast in contrasts:
        sides = contrast.sides(concepts)
        drawn = [concept for side in sides for concept in _drawn(concepts, side, options)]
        ready, refused = encode_concepts(handle, drawn, frame)
        found.skipped.extend((name, "phantom probe", why) for name, why in refused.items())
        kept = [concept for concept, _ in ready]
        ones, zeros = contrast.sides(kept)
        if not ones or not zeros:
            found.skipped.append((contrast.name, "phantom probe", f"{len(ones)} against {len(zeros)} concepts"))
            continue
        tokens = [tokens_of(encoded) for _, encoded in ready]
        frequency = [mean_log_frequency(ids, counts) for ids in tokens]
        values = covariates([concept.concept for concept in kept], tokens, frequency)
        strata = [concept.category for concept in kept]
        pairs = match_concepts(
            values, ones, zeros, strata=strata, caliper=options.caliper, limit=options.pairs, seed=options.seed
        )  # fmt: skip
        found.tables.append(balance(values, ones, zeros, pairs).assign(contrast=contrast.name))
        if len(pairs.ones) < FEWEST_PAIRS:
            reason = f"{len(pairs.ones)} matched pairs, {FEWEST_PAIRS} are needed"
            found.skipped.append((contrast.name, "phantom probe", reason))
            continue
        ids = [[kept[row].id for row in side] for side in (pairs.ones, pairs.zeros)]
        found.pairs[contrast.name] = (ids[0], ids[1])
    if not found.pairs:
        raise InputError(
            "no contrast can be told",
            expected=f"{FEWEST_PAIRS} matched pairs of one at least",
            found="; ".join(f"{name}: {why}" for name, _, why in found.skipped[-len(contrasts) :]),
            fix="give more concepts, or a wider caliper",
        )
    return found


def _drawn(concepts: Sequence[Concept], rows: Sequence[int], options: InsideOptions) -> list[Concept]:
    """Concepts of a side, ten for each wanted pair at most."""
    most = 10 * options.pairs
    order = np.random.default_rng(options.seed).permutation(len(rows))[:most]
    return [concepts[rows[at]] for at in sorted(order)]
