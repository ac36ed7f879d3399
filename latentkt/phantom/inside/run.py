"""The whole look inside, as one run: match, probe, abstention, steering."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from latentkt.errors import InputError, LatentKTError
from latentkt.internals.directions import direction_of_probe, random_directions
from latentkt.internals.probes import fit_probe, probe_table
from latentkt.phantom.inside.abstaining import direction_and_abstention, direction_and_denial, scores_of_others
from latentkt.phantom.inside.activations import ConceptActivations, Frame, read_concepts, subword_frequencies
from latentkt.phantom.inside.contrasts import CONTRASTS, Contrast
from latentkt.phantom.inside.options import InsideOptions
from latentkt.phantom.inside.pairing import Paired, pair_concepts
from latentkt.phantom.inside.steering import denial_log_odds, steer_existence, steering_summary
from latentkt.results import create_run, library_versions, refuse_existing

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.phantom.answers import Answer
    from latentkt.phantom.concepts import Concept

__all__ = ["HEADLINE", "beyond_baselines", "look_inside", "probe_concepts"]

HEADLINE = "recombined"


def look_inside(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    texts: Iterable[str],
    options: InsideOptions,
    *,
    answers: Sequence[Answer] = (),
) -> dict[str, pd.DataFrame]:
    """Measure a model inside on concepts.

    Args:
        handle: The model.
        concepts: Verified concepts, made and real.
        texts: A corpus, for the frequency of subwords.
        options: How.
        answers: Judged answers of the same model, for the link to abstention.

    Returns:
        The tables that `probe_concepts` writes.

    Raises:
        InputError: Not one contrast has enough matched pairs, the layer of steering is none of the model's, or answers
            are not judged or of several settings.
    """
    _check_answers(answers)
    if options.steer_layer is not None and not 0 <= options.steer_layer < handle.n_layers:
        raise InputError("layer of steering", expected=f"0 to {handle.n_layers - 1}", found=options.steer_layer)
    contrasts = [contrast for contrast in CONTRASTS if contrast.name in options.contrasts]
    frame = Frame.of(handle, options.frame, template=options.template, system=options.system)
    matching = pair_concepts(handle, concepts, subword_frequencies(handle, texts), frame, options, contrasts)
    asked = {answer.concept_id for answer in answers}
    needed = asked.union(*(side for pair in matching.pairs.values() for side in pair))
    read = read_concepts(handle, [concept for concept in concepts if concept.id in needed], frame)
    tables = {
        "phantom_balance": pd.concat(matching.tables, ignore_index=True),
        **_probe_tables(read, matching, options, contrasts),
    }
    skipped = [*matching.skipped, *((name, "phantom probe", why) for name, why in read.skipped.items())]
    if HEADLINE in matching.pairs:
        rows, labels = _labelled(read, matching.pairs[HEADLINE])
        if answers:
            with _listed(skipped, "phantom abstention"):  # none may be left to find a direction on
                scores = scores_of_others(read, rows, labels, sorted(asked), kind=options.kind, seed=options.seed)
                tables["phantom_abstention"] = direction_and_abstention(scores, answers)
                of_asked = [read.concepts[row] for row in read.rows(list(scores))]
                denied = denial_log_odds(handle, of_asked, template=options.template, system=options.system)
                tables["phantom_denial"] = direction_and_denial(scores, of_asked, denied)
        if options.steer_concepts:
            with _listed(skipped, "phantom steering"):
                table = _steered(handle, read, rows, labels, options)
                tables |= {"phantom_steering": table, "phantom_steering_summary": steering_summary(table)}
    tables["skipped"] = pd.DataFrame(skipped, columns=["item", "stage", "reason"]).astype("str")
    return {name: table for name, table in tables.items() if len(table) or name == "skipped"}


def _check_answers(answers: Sequence[Answer]) -> None:
    """Answers of one model, all judged: others would be left out, or counted twice, without a word."""
    bare, settings = sum(answer.judgement is None for answer in answers), {answer.setting for answer in answers}
    if bare:
        fix = "run `latentkt phantom judge` first"
        raise InputError(f"{bare} answers are not judged", expected="a verdict each", found="none", fix=fix)
    if len(settings) > 1:
        raise InputError("answers of several settings", expected="those of this model", found=sorted(settings))


@contextmanager
def _listed(skipped: list[tuple[str, str, str]], stage: str) -> Iterator[None]:
    """What cannot be measured behind the probes is listed with its reason; the probes are kept."""
    try:
        yield
    except LatentKTError as error:
        found = "" if error.found is None else f" (found: {error.found})"
        skipped.append(("all", stage, f"{error.what}{found}"))


def _labelled(read: ConceptActivations, pair: tuple[list[str], list[str]]) -> tuple[list[int], list[int]]:
    """Rows of both sides and their labels; a concept that could not be read goes with its partner."""
    there = {concept.id for concept in read.concepts}
    kept = [(one, zero) for one, zero in zip(*pair, strict=True) if {one, zero} <= there]
    ones, zeros = (read.rows([names[side] for names in kept]) for side in (0, 1))
    return [*ones, *zeros], [1] * len(ones) + [0] * len(zeros)


def _probe_tables(
    read: ConceptActivations, matching: Paired, options: InsideOptions, contrasts: Sequence[Contrast]
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
        layers.append(beyond_baselines(found.layers))
        folds.append(found.folds)
    return {
        "phantom_probe": pd.concat(layers, ignore_index=True),
        "phantom_probe_folds": pd.concat(folds, ignore_index=True),
    }


def beyond_baselines(layers: pd.DataFrame) -> pd.DataFrame:
    """Count as evidence only what also lies above chance, above the embedding layer and above the mean embedding.

    Where every left-out seed has a real and a made concept, a bag of subwords can fall below chance: what it has learnt
    of one of the two is wrong for the other. A probe at chance would then lie above the bag. And what the embedding of
    the last token gives away (entry −1), or the mean over all tokens, is not worked out by any layer.
    """
    bars = [0.5, *layers.loc[layers["layer"] == -1, "high"], *layers["embedding_high"].dropna().head(1)]
    beyond = (layers["low"] > 0.5) & (layers["score"] > max(bars)) & (layers["layer"] >= 0)
    return layers.assign(evidence=layers["evidence"] & beyond)


def _steered(
    handle: ModelHandle, read: ConceptActivations, rows: list[int], labels: list[int], options: InsideOptions
) -> pd.DataFrame:
    """Push some of the concepts along a direction that was fitted on the others."""
    layer = handle.n_layers // 2 if options.steer_layer is None else options.steer_layer
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
        `phantom_probe_folds`, `phantom_balance` (before and after matching), `phantom_abstention`, `phantom_denial`,
        `phantom_steering`,
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
