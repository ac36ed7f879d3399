"""Everything that judged answers tell, as tables, with what each of them leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from latentkt.phantom.analysis.comparisons import SettingFacts, domains, pairs_of_settings, sizes
from latentkt.phantom.analysis.frame import judged_frame
from latentkt.phantom.analysis.kinds import distances, kinds
from latentkt.phantom.analysis.paper import checks_frame, paper_rates
from latentkt.phantom.analysis.rates import completion, rates
from latentkt.phantom.analysis.selectivity import abstention_by_cell, correlations, selectivity
from latentkt.trapqa.analysis.ledger import Ledger

if TYPE_CHECKING:
    from latentkt.phantom.answers import Answer
    from latentkt.phantom.concepts import Concept

__all__ = ["Analysis", "analyse", "concepts_table"]


@dataclass(frozen=True)
class Analysis:
    """Tables of an analysis.

    Attributes:
        tables: Name -> table.
        settings: The settings, in the order of the answers.
        judges: Who judged.
        ledger: What tables leave out, and why a table is not there.
    """

    tables: dict[str, pd.DataFrame]
    settings: tuple[str, ...]
    judges: tuple[str, ...]
    ledger: Ledger


def analyse(
    answers: Sequence[Answer],
    *,
    facts: Sequence[SettingFacts] = (),
    concepts: Sequence[Concept] = (),
    more: dict[str, pd.DataFrame] | None = None,
    seed: int = 0,
) -> Analysis:
    """Compute every table.

    Args:
        answers: Judged answers; one judge a setting.
        facts: Sizes, families and domains of settings, for the comparisons of Sections 5.4 and 5.5.
        concepts: The concepts, for the table of what was asked about and how it was verified.
        more: Tables made elsewhere: agreement with labels, ratings, claims.
        seed: Of bootstraps and permutations.

    Raises:
        InputError: Answers that are not judged, or judged by several judges.
    """
    frame = judged_frame(answers)
    ledger = Ledger()
    _note_left_out(frame, ledger)
    cells = abstention_by_cell(frame)
    tables = {
        "answers": frame,
        "completion": completion(frame),
        "rates": rates(frame),
        "selectivity": selectivity(frame),
        "cells": cells,
        "correlation": correlations(cells, seed=seed),
        "kinds": kinds(frame),
        "kind_distances": distances(frame, seed=seed),
        "pairs": pairs_of_settings(frame),
        "sizes": sizes(frame, facts),
        "domains": domains(frame, facts),
        "paper_rates": paper_rates(),
        "paper_checks": checks_frame(),
        **({"concepts": concepts_table(concepts)} if concepts else {}),
        **(more or {}),
    }
    for name, reason in (
        ("pairs", "answers of one setting only"),
        ("sizes", "no family with two sizes among the settings (see --facts)"),
        ("domains", "no specialised setting with its base among the settings (see --facts)"),
        ("kinds", "no abstention"),
    ):
        if tables[name].empty:
            ledger.unavailable(name, "", reason)
    for row in tables["correlation"].to_dict("records"):
        if row["reason"]:
            ledger.unavailable(f"correlation with {row['with']}", "", row["reason"])
    there = {name: table for name, table in tables.items() if len(table)}
    settings = tuple(dict.fromkeys(frame["setting"]))
    return Analysis(there, settings, tuple(dict.fromkeys(frame["judge"])), ledger)


def _note_left_out(frame: pd.DataFrame, ledger: Ledger) -> None:
    for setting, mine in frame.groupby("setting", sort=False):
        for reason, which in (
            ("the call failed", mine["failed"]),
            ("the judge's verdict cannot be read", mine["judgement"] == "unparsable"),
            ("its existence was not verified: no rate of hallucination", mine["existence"] == "unverified"),
        ):
            ledger.leave_out("rates", str(setting), reason, mine.loc[which, "prompt_id"])
        reason = "no answer: cut off in the reasoning, or empty (convention `answered` only)"
        none = mine[(mine["judgement"] == "no_answer") & ~mine["failed"]]
        ledger.leave_out("rates", str(setting), reason, none["prompt_id"])


def concepts_table(concepts: Sequence[Concept]) -> pd.DataFrame:
    """Concepts by kind, method, category and existence, with what was searched to tell.

    Returns:
        `concept_kind`, `method`, `category`, `existence`, `count`, `searched` (the corpora and their tokens).
    """
    rows: dict[tuple[str, ...], int] = {}
    for concept in concepts:
        key = (concept.kind, concept.method, concept.category, concept.existence, searched(concept))
        rows[key] = rows.get(key, 0) + 1
    names = ["concept_kind", "method", "category", "existence", "searched"]
    return pd.DataFrame([(*key, count) for key, count in sorted(rows.items())], columns=[*names, "count"])


def searched(concept: Concept) -> str:
    """What was searched for a concept, in words."""
    found = concept.search or {}
    tokens = found.get("tokens")
    told = [f"{tokens:,} tokens"] if isinstance(tokens, int) else []
    bound = found.get("upper_per_million")
    if found.get("matches") == 0 and bound is not None:
        told.append(f"no match allows up to {bound:.2g} per million")
    size = f" ({'; '.join(told)})" if told else ""
    return f"{found['corpus']}{size}" if found.get("corpus") else "nothing"
