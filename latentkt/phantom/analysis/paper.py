"""The figures of the PhantomBench paper (arXiv 2606.11105), and what does not fit among them.

Facts only: numbers of its tables and text, kept as reference beside one's own. The checks recompute what can be
recomputed from them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

__all__ = ["Check", "checks_frame", "paper_checks", "paper_figures", "paper_rates", "possible"]

PROPERTIES = ("existence", "meaning", "date", "place")
DOMAIN_PAIRS = (
    ("Biomedical: Gemma 3 4B (general)", "Biomedical: MedGemma 4B (specialized)"),
    ("Biomedical: Mistral 7B v0.1 (general)", "Biomedical: BioMistral 7B (specialized)"),
    ("Legal: Mistral 7B v0.1 (general)", "Legal: SaulLM 7B (specialized)"),
)


@dataclass(frozen=True, slots=True)
class Check:
    """One figure or statement of the paper, held against its other figures.

    Attributes:
        where: Place in the paper.
        printed: What it says.
        found: What follows from its other figures.
        fits: Whether the two agree.
        note: What that means.
    """

    where: str
    printed: str
    found: str
    fits: bool
    note: str


@cache
def paper_figures() -> dict[str, Any]:
    """All figures, as they are printed."""
    return json.loads(resources.files("latentkt.phantom.analysis").joinpath("paper.json").read_text(encoding="utf-8"))


def paper_rates() -> pd.DataFrame:
    """Tables 3 and 4 in long form: `table`, `setting`, `concept_kind`, `property`, `rate_pct`, `convention`.

    The paper counts only replies with a final answer for models that reason, and all replies elsewhere.
    """
    figures = paper_figures()
    rows = []
    for table in ("table3", "table4"):
        for setting, kinds in figures[f"{table}_pct"].items():
            convention = "answered" if setting in figures["reasoning"] else "all"
            for kind, values in kinds.items():
                for name, rate in values.items():
                    about = {"table": table, "setting": setting, "concept_kind": _singular(kind), "property": name}
                    rows.append({**about, "rate_pct": rate, "convention": convention})
    return pd.DataFrame(rows)


def _singular(kind: str) -> str:
    return {"terms": "term", "entities": "entity"}[kind]


def checks_frame() -> pd.DataFrame:
    """The checks as a table."""
    return pd.DataFrame([{name: getattr(check, name) for name in Check.__slots__} for check in paper_checks()])


def paper_checks() -> list[Check]:
    """Recompute what can be recomputed.

    Example:
        >>> [check.where for check in paper_checks() if not check.fits][:2]
        ['Section 4.1, number of entities', 'Section 4.1, size of Phantom-Legal']
    """
    figures = paper_figures()
    return [
        *_sizes(figures),
        *_granularity(figures),
        *_averages(figures),
        *_claims_of_text(figures),
        *_statistics(figures),
    ]


def _sizes(figures: dict[str, Any]) -> list[Check]:
    text, table = figures["text"], figures["table2"]
    terms, entities = (sum(table[kind].values()) for kind in ("terms", "entities"))
    legal = table["terms"]["English_legal_terms"]
    return [
        Check("Section 4.1, number of terms", f"{text['terms']:,}", f"{terms:,}", terms == text["terms"], ""),
        Check(
            "Section 4.1, number of entities",
            f"{text['entities']:,}",
            f"{entities:,} is the sum of Table 2",
            entities == text["entities"],
            f"{terms:,} + {entities:,} = {terms + entities:,}, the printed total: the number in the text is the error",
        ),
        Check(
            "Section 4.1, size of Phantom-Legal",
            f"about {text['subset']:,} concepts",
            f"{legal:,} legal terms exist in all (Table 2)",
            legal >= 0.9 * text["subset"],
            "the subset cannot have about a thousand; Table 5's legal averages are shares of 4 × 725 replies",
        ),
    ]


def possible(percent: float, n: int) -> bool:
    """Whether a percentage, printed to two decimals, can be a share of n replies.

    Example:
        >>> possible(14.34, 1060), possible(22.76, 1060)
        (True, False)
    """
    return abs(100 * round(percent * n / 100) / n - percent) <= 0.005 + 1e-9


def _granularity(figures: dict[str, Any]) -> list[Check]:
    """Shares of n replies come in steps of 100 / n: which n fits most cells, and which cells does it not fit?"""
    found = []
    rows = {**figures["table3_pct"], **figures["table4_pct"]}
    for kind, name in (("terms", "Phantom-T"), ("entities", "Phantom-E")):
        cells = {
            f"{model}, {prop}": rate
            for model, row in rows.items()
            if model not in figures["reasoning"]
            for prop, rate in row[kind].items()
        }
        best = max(range(800, 1401), key=lambda n: (sum(possible(rate, n) for rate in cells.values()), -n))
        off = {where: rate for where, rate in cells.items() if not possible(rate, best)}
        listed = "; ".join(f"{where} {rate}" for where, rate in list(off.items())[:4]) + ("; …" if len(off) > 4 else "")
        found.append(
            Check(
                f"Tables 3 and 4, {name}, models that do not reason",
                f"{len(cells)} rates to two decimals",
                f"{len(cells) - len(off)} are shares of {best:,} replies" + (f"; not so: {listed}" if off else ""),
                not off,
                "rates that are no share of whole replies were rounded twice, or rest on fewer replies" if off else "",
            )
        )
    return found


def _averages(figures: dict[str, Any]) -> list[Check]:
    highest, printed = max(figures["table5_pct"].values()), figures["text"]["highest_average_pct"]
    note = "Table 5 holds averages above it; the abstract's figure must be of the core models on one property"
    return [
        Check(
            "Abstract, highest average", f"as high as {printed} %", f"{highest} % in Table 5", highest <= printed, note
        )
    ]


def _claims_of_text(figures: dict[str, Any]) -> list[Check]:
    rates = figures["table3_pct"]
    plain = [model for model in figures["core"] if model != "Gemma 3 12B"]
    reasoning = {m: _mean([rates[m][k]["existence"] for k in ("terms", "entities")]) for m in figures["reasoning"]}
    others = {m: _mean([rates[m][k]["existence"] for k in ("terms", "entities")]) for m in figures["core"]}
    deep, better = reasoning["DeepSeek-R1 32B"], [m for m in others if others[m] < reasoning["DeepSeek-R1 32B"]]
    averages = {m: _mean([v for kind in rates[m].values() for v in kind.values()]) for m in rates}
    gemma, highest = averages["Gemma 3 12B"], max(averages[m] for m in figures["reasoning"])
    worse = sum(figures["table5_pct"][special] > figures["table5_pct"][base] for base, special in DOMAIN_PAIRS)
    return [
        Check(
            "Section 5.3, reasoning models abstain more on existence",
            "more likely to abstain on existence queries",
            f"DeepSeek-R1 32B {deep:.1f} %; lower are {', '.join(better)}",
            not better,
            "holds for GPT-OSS 20B, not for DeepSeek-R1 32B",
        ),
        Check(
            "Section 5.3, reasoning models hallucinate more",
            "higher rates than models that do not reason",
            f"highest of the reasoning models {highest:.1f} %, Gemma 3 12B {gemma:.1f} %; "
            f"the other core models up to {max(averages[m] for m in plain):.1f} %",
            gemma < highest,
            "Gemma 3 12B, which does not reason, lies above all three; the groups count by different conventions",
        ),
        Check(
            "Section 5.3, medium and high effort",
            "traces too long at medium or high level",
            "Table 3 has low and medium",
            False,
            "no figures of the high level are printed, and the completion rates stand in an appendix that is not there",
        ),
        Check(
            "Abstract, specialised models",
            "often fail more frequently than smaller general-purpose ones",
            f"{worse} of the {len(DOMAIN_PAIRS)} pairs of Table 5; none of the bases is smaller",
            False,
            "the bases have the size of the specialised models",
        ),
        Check(
            "Section 6.1, the best models of Section 5.1",
            "Llama 3.1 8B, Qwen 2.5 7B and Qwen 3 8B",
            "Section 5.1 names the first two",
            False,
            f"Qwen 3 8B averages {averages['Qwen 3 8B']:.1f} % in Table 3, Qwen 2.5 7B {averages['Qwen 2.5 7B']:.1f} %",
        ),
    ]


def _statistics(figures: dict[str, Any]) -> list[Check]:
    from scipy.stats import t as student_t

    given, claims = figures["correlation"], figures["claims"]
    n, r = given["settings"], given["common"]
    p = 2 * float(student_t.sf(r * math.sqrt((n - 2) / (1 - r**2)), n - 2))
    with_claims = round(claims["with_claims_pct"] / 100 * claims["n"])
    false = round(claims["false_of_claims_pct"] / 100 * with_claims)
    of_all = round(100 * false / claims["n"], 1)
    return [
        Check(
            "Section 6.2, p of the correlation with common concepts",
            f"p = {given['p_common']}",
            f"p = {p:.4f} for r = {r}, n = {n}",
            abs(p - given["p_common"]) < 1e-3,
            f"with the {n} settings taken as independent, though they are {given['models']} models; that rare lies "
            "above common is not tested in the paper",
        ),
        Check(
            "Section 5.6, false claims of all abstentions",
            f"{claims['false_of_all_pct']} %",
            f"{false} of {claims['n']}: {of_all} %",
            of_all == claims["false_of_all_pct"],
            f"{with_claims} with claims, {false} of them false",
        ),
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
