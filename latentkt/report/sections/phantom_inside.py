"""What the network holds at the last token of a concept: does it exist, and does that matter for the answer?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Does the network know what exists?"
INTRO = (
    "Probes read the residual stream at a concept's last token, all concepts standing in one and the same question. "
    "Concepts are matched on category, number of tokens and words, and mean frequency of their subwords; whole seeds, "
    "with what was made of them, are left out of training. What a probe reads beyond a bag of the same subwords and "
    "beyond their embeddings is about their combination."
)
NAMES = {
    "recombined": "recombined terms and real ones",
    "blended": "terms with blended words and real ones",
    "pattern": "made entities and real ones",
    "rare": "rare terms and common ones",
    "recombined_rare": "recombined terms and rare ones",
}
HEADLINE = "recombined"
LIMITS = (
    "Recombined terms are the headline, since each of their words is a real one. Blended words can be told by their "
    "letters: their probe may read spelling. What can be read need not be used; steering asks that, and random "
    "directions of the same length say what any push does. Folds share training rows, so intervals are a guide."
)


def section(run: Run) -> Section | None:
    """The section, or None without the table `phantom_probe`."""
    if not run.has("phantom_probe"):
        return None
    probe = run.tables["phantom_probe"]
    require(probe, "phantom_probe")
    findings: list[Finding] = []
    blocks: list[Block] = []
    for target in dict.fromkeys(probe["target"]):
        mine = probe[probe["target"] == target]
        finding = _probe(str(target), mine)
        findings.append(finding)
        blocks.append(
            Picture.of(
                plots.phantom_probe(mine, title=f"{_name(target).capitalize()}", caption=caption_of_run(run)),
                alt=f"Held-out accuracy by layer for {_name(target)}. {finding.text}",
                caption="The probe counts where it lies above the bag of subwords, the embeddings and chance.",
            )
        )
    blocks += _balance(run)
    blocks += _abstention(run, findings)
    findings += _denial(run)
    blocks += _steering(run, findings)
    return Section("phantom_inside", TITLE, INTRO, tuple(findings), (*blocks, Note(LIMITS)))


def _name(target: object) -> str:
    return NAMES.get(str(target), str(target))


def _probe(target: str, mine: pd.DataFrame) -> Finding:
    """Over all layers but the embedding, so that no layer is picked for its score."""
    inner = mine[mine["layer"] >= 0]
    evidence = int(inner["evidence"].sum())
    best = inner.sort_values("score").iloc[-1].to_dict()
    first = 100 * float(mine.loc[mine["layer"] == -1, "score"].iloc[0])
    headline = " (headline)" if target == HEADLINE else ""
    numbers = (
        f"{100 * inner['score'].mean():.0f} % of held-out concepts rightly over all layers, a bag of subwords "
        f"{100 * float(inner['bag_score'].iloc[0]):.0f} %, their mean embedding "
        f"{100 * float(inner['embedding_score'].iloc[0]):.0f} %, the last token's {first:.0f} % "
        f"({plural(int(best['n_rows']), 'concept')}); highest "
        f"after layer {best['layer']:.0f} with {100 * best['score']:.0f} % [{100 * best['low']:.0f}, "
        f"{100 * best['high']:.0f}]"
    )
    # In some layers only: neither found nor absent.
    verdict_of_all = True if evidence >= len(inner) / 2 else None if evidence else False
    verdict = (
        f"more than subwords and embeddings give away in {evidence} of {plural(len(inner), 'layer')}"
        if evidence
        else "in no layer more than subwords and embeddings give away"
    )
    return Finding(
        f"{_name(target).capitalize()}{headline}: a probe tells {numbers}. It reads {verdict}.", found=verdict_of_all
    )


def _balance(run: Run) -> list[Block]:
    if not run.has("phantom_balance"):
        return []
    table = run.tables["phantom_balance"]
    require(table, "phantom_balance")
    rows = tuple(
        (
            _name(row["contrast"]),
            str(row["covariate"]).replace("_", " "),
            f"{row['difference']:+.2f}",
            f"{row['difference_matched']:+.2f}",
            str(row["pairs"]),
        )
        for row in table.to_dict("records")
    )
    columns = ("contrast", "covariate", "difference before", "after matching", "pairs")
    caption = "Balance: standardised differences of made minus real (or rare minus common)."
    return [Grid(columns, rows, caption, numeric=frozenset(columns[2:]))]


def _abstention(run: Run, findings: list[Finding]) -> list[Block]:
    if not run.has("phantom_abstention"):
        return []
    table = run.tables["phantom_abstention"]
    require(table, "phantom_abstention")
    for scope, words in (("phantom", "Among made concepts"), ("all", "Over all concepts")):
        mine = table[(table["scope"] == scope) & (table["property"] == "all")]
        if mine.empty:
            continue
        first = mine.iloc[0].to_dict()
        if mine["auc"].isna().all():
            findings.append(
                Finding(
                    f"{words} the link to abstention cannot be measured: of {first['n']} concepts "
                    f"{first['n_abstained']} are abstained on more than the median one ({first['reason']})."
                )
            )
            continue
        middle = mine.sort_values("layer").iloc[len(mine) // 2].to_dict()
        apart = middle["auc_low"] > 0.5 or middle["auc_high"] < 0.5
        ends = f"{middle['auc']:.2f} [{middle['auc_low']:.2f}, {middle['auc_high']:.2f}]"
        verdict = "it does tell" if apart else "not distinguishable from no relation"
        findings.append(
            Finding(
                f"{words} the direction from real to made, after the middle layer ({middle['layer']:.0f}), tells those "
                f"abstained on from the others with an area of {ends} ({first['n']} concepts): {verdict}.",
                found=bool(apart),
            )
        )
    if table.loc[table["property"] == "all", "auc"].isna().all():
        return []
    return [
        Picture.of(
            plots.phantom_abstention(table, caption=caption_of_run(run)),
            alt="Area under the curve by layer: does the direction from real to made predict abstention?",
            caption="Concepts that are scored here, and their relatives, are left out of the probe's training.",
        )
    ]


def _denial(run: Run) -> list[Finding]:
    if not run.has("phantom_denial"):
        return []
    table = run.tables["phantom_denial"]
    require(table, "phantom_denial")
    area = table[table["measure"] == "auc"].iloc[0].to_dict()
    apart = area["low"] > 0.5 or area["high"] < 0.5
    verdict = "it leans more to No on made ones" if area["value"] > 0.5 else "it leans less to No on made ones"
    found = [
        Finding(
            f"Asked whether they exist, its log-odds of No over Yes tell made from real concepts with an area of "
            f"{area['value']:.2f} [{area['low']:.2f}, {area['high']:.2f}] ({plural(int(area['n']), 'concept')}): "
            f"{verdict if apart else 'not distinguishable from chance'}. These concepts are not matched: length and "
            "frequency of their words may have a part in it.",
            found=bool(apart),
        )
    ]
    mine = table[(table["measure"] == "spearman") & (table["scope"] == "phantom")].sort_values("layer")
    row = mine.iloc[len(mine) // 2].to_dict()
    if not math.isnan(row["value"]):
        there = row["low"] > 0 or row["high"] < 0
        ends = f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
        found.append(
            Finding(
                f"Among made concepts the direction from real to made, after the middle layer ({row['layer']:.0f}), "
                f"goes with these log-odds by a rank correlation of {ends} ({plural(int(row['n']), 'concept')})"
                f"{'' if there else ': not distinguishable from none'}.",
                found=bool(there),
            )
        )
    return found


def _steering(run: Run, findings: list[Finding]) -> list[Block]:
    if not run.has("phantom_steering"):
        return []
    table, summary = run.tables["phantom_steering"], run.tables["phantom_steering_summary"]
    require(table, "phantom_steering")
    require(summary, "phantom_steering_summary")
    made: dict[Any, Any] = summary[summary["direction"] == "made"].iloc[0].to_dict()
    there = (made["slope_low"] > 0 or made["slope_high"] < 0) and abs(made["slope"]) > made["placebo_largest"]
    ends = "" if math.isnan(made["slope_low"]) else f" [{made['slope_low']:+.3f}, {made['slope_high']:+.3f}]"
    if there:
        way = "towards No" if made["slope"] > 0 else "towards Yes"
        verdict = f"more than each of {made['placebos']} random directions does, {way}"
    else:
        verdict = "not distinguishable from none, or no more than a random direction does"
    text = (
        f"Pushing {plural(int(made['n']), 'concept')} after layer {made['layer']} by one step from real to made moves "
        f"No over Yes by {made['slope']:+.3f}{ends} nats; the largest of {made['placebos']} random directions of the "
        f"same length: {made['placebo_largest']:.3f}. That is {verdict}."
    )
    findings.append(Finding(text, found=bool(there)))
    return [
        Picture.of(
            plots.phantom_steering(table, caption=caption_of_run(run)),
            alt=f"Change of log-odds with the dose. {text}",
            caption="The direction counts where it leaves what random directions of the same length do.",
        )
    ]
