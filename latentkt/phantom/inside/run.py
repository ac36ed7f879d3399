"""The whole look inside, as one run: match, probe, abstention, steering."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from latentkt.errors import InputError
from latentkt.internals.directions import direction_of_probe, random_directions
from latentkt.internals.probes import fit_probe, probe_table
from latentkt.phantom.inside.abstaining import direction_and_abstention, scores_of_others
from latentkt.phantom.inside.activations import (
    FRAME,
    ConceptActivations,
    Frame,
    encode_concepts,
    mean_log_frequency,
    read_concepts,
    subword_frequencies,
    tokens_of,
)
from latentkt.phantom.inside.contrasts import CONTRASTS, Contrast
from latentkt.phantom.inside.matching import balance, covariates, match_concepts
from latentkt.phantom.inside.steering import DOSES, steer_existence, steering_summary
from latentkt.results import create_run, library_versions, refuse_existing

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.phantom.answers import Answer
    from latentkt.phantom.concepts import Concept

__all__ = ["HEADLINE", "InsideOptions", "look_inside", "probe_concepts"]

HEADLINE = "recombined"
FEWEST_PAIRS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideOptions:
    """How the look inside is done.

    Attributes:
        frame: The question in which concepts are read.
        template: `chat` or `plain`; None: chat where the tokenizer has a template.
        system: A system prompt in place of the template's own.
        kind: Kind of probe: `logistic`, `ridge`, `lda` or `mean_difference`.
        pairs: At most so many matched pairs a contrast.
        caliper: See `match_concepts`.
        max_folds: Folds of the probes.
        steer_layer: After which layer states are pushed; None: the middle one, so that none is picked for its effect.
        steer_concepts: Concepts that are pushed: half made, half real.
        placebos: Random directions beside the probe's.
        doses: See `latentkt.phantom.inside.steering`.
        seed: Of everything that is drawn.
    """

    frame: str = FRAME
    template: str | None = None
    system: str | None = None
    kind: str = "ridge"
    pairs: int = 200
    caliper: float = 0.25
    max_folds: int = 5
    steer_layer: int | None = None
    steer_concepts: int = 20
    placebos: int = 4
    doses: tuple[float, ...] = DOSES
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, low in (
            ("pairs", self.pairs, 10),
            ("max_folds", self.max_folds, 2),
            ("steer_concepts", self.steer_concepts, 0),
            ("placebos", self.placebos, 1),
        ):
            if value < low:
                raise InputError(f"{name} is wrong", expected=f">= {low}", found=value)


@dataclass(frozen=True, eq=False)
class _Matching:
    """Contrasts that can be told, as ids of concepts.

    Attributes:
        pairs: Contrast -> ids labelled 1 and their partners, labelled 0.
        tables: Balance of each contrast.
        skipped: What was left out: item, stage, reason.
    """

    pairs: dict[str, tuple[list[str], list[str]]]
    tables: list[pd.DataFrame]
    skipped: list[tuple[str, str, str]]


def look_inside(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    texts: Iterable[str],
    options: InsideOptions,
    *,
    answers: Sequence[Answer] = (),
    contrasts: Sequence[Contrast] = CONTRASTS,
) -> dict[str, pd.DataFrame]:
    """Measure a model inside on concepts.

    Args:
        handle: The model.
        concepts: Verified concepts, made and real.
        texts: A corpus, for the frequency of subwords.
        options: How.
        answers: Judged answers of the same model, for the link to abstention.
        contrasts: What is told apart.

    Returns:
        The tables that `probe_concepts` writes.

    Raises:
        InputError: Not one contrast has enough matched pairs.
    """
    frame = Frame.of(handle, options.frame, template=options.template, system=options.system)
    matching = _match(handle, concepts, subword_frequencies(handle, texts), frame, options, contrasts)
    asked = {answer.concept_id for answer in answers}
    needed = asked.union(*(side for pair in matching.pairs.values() for side in pair))
    read = read_concepts(handle, [concept for concept in concepts if concept.id in needed], frame)
    tables = {
        "phantom_balance": pd.concat(matching.tables, ignore_index=True),
        **_probe_tables(read, matching, options, contrasts),
        "skipped": pd.DataFrame(
            [*matching.skipped, *((name, "phantom probe", why) for name, why in read.skipped.items())],
            columns=["item", "stage", "reason"],
        ).astype("str"),
    }
    if HEADLINE in matching.pairs:
        rows, labels = _labelled(read, matching.pairs[HEADLINE])
        if answers:
            scores = scores_of_others(read, rows, labels, sorted(asked), kind=options.kind, seed=options.seed)
            tables["phantom_abstention"] = direction_and_abstention(scores, answers)
        if options.steer_concepts:
            table = _steered(handle, read, rows, labels, options)
            tables |= {"phantom_steering": table, "phantom_steering_summary": steering_summary(table)}
    return {name: table for name, table in tables.items() if len(table) or name == "skipped"}


def _match(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    counts: Mapping[int, int],
    frame: Frame,
    options: InsideOptions,
    contrasts: Sequence[Contrast],
) -> _Matching:
    found = _Matching({}, [], [])
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
        pairs = match_concepts(
            values, ones, zeros, caliper=options.caliper, limit=options.pairs, seed=options.seed
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


def _labelled(read: ConceptActivations, pair: tuple[list[str], list[str]]) -> tuple[list[int], list[int]]:
    """Rows of both sides and their labels; a concept that could not be read goes with its partner."""
    there = {concept.id for concept in read.concepts}
    kept = [(one, zero) for one, zero in zip(*pair, strict=True) if {one, zero} <= there]
    ones, zeros = (read.rows([names[side] for names in kept]) for side in (0, 1))
    return [*ones, *zeros], [1] * len(ones) + [0] * len(zeros)


def _probe_tables(
    read: ConceptActivations, matching: _Matching, options: InsideOptions, contrasts: Sequence[Contrast]
) -> dict[str, pd.DataFrame]:
    layers, folds = [], []
    for contrast in contrasts:
        if contrast.name not in matching.pairs:
            continue
        rows, labels = _labelled(read, matching.pairs[contrast.name])
        groups = [read.concepts[row].group for row in rows]
        found = probe_table(
            read.features[rows],
            np.array(labels),
            groups,
            prompts=[read.tokens[row] for row in rows],
            embedding=read.embedding[rows],
            kinds=(options.kind,),
            splits=("generalisation",),
            target=contrast.name,
            role="concept_last",
            max_folds=options.max_folds,
            seed=options.seed,
        )
        layers.append(above_chance(found.layers))
        folds.append(found.folds)
    return {
        "phantom_probe": pd.concat(layers, ignore_index=True),
        "phantom_probe_folds": pd.concat(folds, ignore_index=True),
    }


def above_chance(layers: pd.DataFrame) -> pd.DataFrame:
    """Count as evidence only what also lies above chance.

    Where every left-out seed has a real and a made concept, a bag of subwords can fall below chance: what it has learnt
    of one of the two is wrong for the other. A probe at chance would then lie above the bag.
    """
    return layers.assign(evidence=layers["evidence"] & (layers["low"] > 0.5))


def _steered(
    handle: ModelHandle, read: ConceptActivations, rows: list[int], labels: list[int], options: InsideOptions
) -> pd.DataFrame:
    """Push some of the concepts along a direction that was fitted on the others."""
    layer = handle.n_layers // 2 if options.steer_layer is None else options.steer_layer
    if not 0 <= layer < handle.n_layers:
        raise InputError("layer of steering", expected=f"0 to {handle.n_layers - 1}", found=layer)
    half = len(rows) // 2
    each = min(options.steer_concepts // 2, half // 2)
    pushed = {read.concepts[row].group for row in [*rows[:each], *rows[half : half + each]]}
    train = [at for at, row in enumerate(rows) if read.concepts[row].group not in pushed]
    features, truth = read.features[[rows[at] for at in train], layer + 1], np.array([labels[at] for at in train])
    groups = [read.concepts[rows[at]].group for at in train]
    probe = fit_probe(features, truth, groups, kind=options.kind, seed=options.seed, name="steering")
    made = direction_of_probe(handle, probe, features, truth, layer=layer, name="made")
    concepts = [read.concepts[row] for row in [*rows[:each], *rows[half : half + each]]]
    table = steer_existence(
        handle,
        concepts,
        [made, *random_directions(made, options.placebos, seed=options.seed)],
        doses=options.doses,
        template=options.template,
        system=options.system,
    )
    size = float(np.linalg.norm(features, axis=1).mean())
    return table.assign(step=made.scale, step_of_norm=abs(made.scale) / size)


def probe_concepts(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    texts: Iterable[str],
    out: str | os.PathLike[str],
    options: InsideOptions | None = None,
    *,
    answers: Sequence[Answer] = (),
    identity: Mapping[str, Any] | None = None,
    command: Sequence[str] | None = None,
) -> Path:
    """Measure a model inside on concepts, and write a run folder.

    Args:
        handle: The model.
        concepts: Verified concepts, made and real.
        texts: A corpus, for the frequency of subwords.
        out: The folder, new.
        options: How.
        answers: Judged answers of the same model.
        identity: What the tables depend on besides the options: files and their hashes.
        command: The words of the command line.

    Returns:
        The folder. Its tables: `phantom_probe` (by contrast and layer, with baselines and intervals),
        `phantom_probe_folds`, `phantom_balance` (before and after matching), `phantom_abstention`, `phantom_steering`,
        `phantom_steering_summary`, `skipped`.

    Raises:
        InputError: Not one contrast has enough matched pairs.
        RunError: The folder exists.
    """
    options = options or InsideOptions()
    folder = Path(out)
    refuse_existing(folder, resume=False)
    tables = look_inside(handle, concepts, texts, options, answers=answers)
    metadata = {
        "model": handle.metadata(),
        "seeds": {"phantom": options.seed},
        "options": asdict(options),
        **(identity or {}),
        "versions": library_versions(),
    }
    with create_run(folder, metadata=metadata, command=command) as run:
        for name, table in tables.items():
            run.save(name, table)
        run.finish()
    return folder
