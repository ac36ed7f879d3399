"""Settings against each other on the same questions: sizes of one family, a specialised model against its base."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import pandas as pd

from latentkt.errors import DataError
from latentkt.phantom.analysis.frame import counted, share_row
from latentkt.phantom.analysis.rates import EVERY
from latentkt.phantom.judging.labels import sheet_rows
from latentkt.stats import cluster_interval, holm, mcnemar_test

__all__ = ["SettingFacts", "domains", "pairs_of_settings", "read_setting_facts", "sizes"]


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """What is known of a setting besides its answers.

    Attributes:
        setting: Its name in the answers.
        family: Models that differ in size only.
        size: Parameters, in billions; NaN where it is not known.
        domain: What the model was specialised in; empty for a general one.
        base: The setting that it was specialised from.
        categories: Categories of concepts that belong to the domain; empty: all.
    """

    setting: str
    family: str = ""
    size: float = math.nan
    domain: str = ""
    base: str = ""
    categories: tuple[str, ...] = ()


def read_setting_facts(path: str | Path) -> list[SettingFacts]:
    """Read a CSV with `setting` and any of `family`, `size` (billions), `domain`, `base`, `categories` (with ;).

    Raises:
        InputError: There is no such file.
        DataError: A setting stands twice, or a size is no number above 0.
    """
    facts: dict[str, SettingFacts] = {}
    for number, row in enumerate(sheet_rows(path, ("setting",)), start=2):
        try:
            size = float(row.get("size") or "nan")
        except ValueError:
            size = -1.0
        if row["setting"] in facts or size <= 0:
            raise DataError(
                f"{path}, line {number}: setting {row['setting']!r}",
                expected="each setting once, sizes above 0 in billions",
                found=f"size {row.get('size')!r}",
            )
        listed = tuple(part.strip() for part in row.get("categories", "").split(";") if part.strip())
        facts[row["setting"]] = SettingFacts(
            row["setting"], row.get("family", ""), size, row.get("domain", ""), row.get("base", ""), listed
        )
    return list(facts.values())


def pairs_of_settings(frame: pd.DataFrame, *, existence: str = "phantom") -> pd.DataFrame:
    """Every two settings on the questions that both answered, by property and over all.

    Returns:
        One row a pair and property: `first`, `second`, `n`, `only_first`, `only_second` (questions on which only this
        one does not abstain), `difference` (rate of the second − the first, percentage points, with an interval that
        counts seeds), exact McNemar `p`, and `p_holm` over all rows.
    """
    settings = list(dict.fromkeys(frame["setting"]))
    rows = [row for first, second in combinations(settings, 2) for row in _paired(frame, first, second, existence)]
    return _adjusted(rows)


def sizes(frame: pd.DataFrame, facts: Sequence[SettingFacts], *, existence: str = "phantom") -> pd.DataFrame:
    """Rates along the sizes of each family (Section 5.4), with the step from each size to the next.

    Returns:
        One row a family, property and size: the rate with its interval, and `step` (change from the next smaller size
        on the same questions, percentage points, with interval, McNemar `p` and `p_holm`); NaN for the smallest.
    """
    there = set(frame["setting"])
    families: dict[str, list[SettingFacts]] = {}
    for fact in facts:
        if fact.family and fact.setting in there and not math.isnan(fact.size):
            families.setdefault(fact.family, []).append(fact)
    rows = []
    for family, members in families.items():
        ordered = sorted(members, key=lambda fact: fact.size)
        if len(ordered) < 2:
            continue
        steps = {}
        for smaller, larger in pairwise(ordered):
            for row in _paired(frame, smaller.setting, larger.setting, existence):
                steps[larger.setting, row["property"]] = row
        for fact in ordered:
            for name, mine in _by_property(frame, fact.setting, existence):
                step = steps.get((fact.setting, name), {})
                about = {"family": family, "setting": fact.setting, "size": fact.size, "property": name}
                moved = {f"step{end}": step.get(f"difference{end}", math.nan) for end in ("", "_low", "_high")}
                rows.append({**about, **share_row(mine), **moved, "p": step.get("p", math.nan)})
    return _adjusted(rows)


def domains(frame: pd.DataFrame, facts: Sequence[SettingFacts], *, existence: str = "phantom") -> pd.DataFrame:
    """Specialised models against their bases on concepts of the domain (Section 5.5).

    Returns:
        One row a specialised setting and property, as in `pairs_of_settings`, with `domain`; `first` is the base.
    """
    there = set(frame["setting"])
    rows = []
    for fact in facts:
        if fact.domain and {fact.setting, fact.base} <= there:
            mine = frame[frame["category"].isin(fact.categories)] if fact.categories else frame
            found = _paired(mine, fact.base, fact.setting, existence)
            rows += [{"domain": fact.domain, **row} for row in found]
    return _adjusted(rows)


def _by_property(frame: pd.DataFrame, setting: str, existence: str) -> list[tuple[str, pd.DataFrame]]:
    mine = counted(frame[(frame["setting"] == setting) & (frame["existence"] == existence)], "all")
    return [(EVERY, mine), *((str(name), part) for name, part in mine.groupby("property", sort=False))]


def _paired(frame: pd.DataFrame, first: str, second: str, existence: str) -> list[dict[str, object]]:
    sides = []
    for setting in (first, second):
        mine = counted(frame[(frame["setting"] == setting) & (frame["existence"] == existence)], "all")
        sides.append(mine[mine["abstains"].notna()].set_index("prompt_id"))
    both = sides[0][["property", "group", "abstains"]].join(sides[1]["abstains"].rename("abstains_2"), how="inner")
    parts = [(EVERY, both), *((str(name), part) for name, part in both.groupby("property", sort=False))]
    rows: list[dict[str, object]] = []
    for name, part in parts:
        if part.empty:
            continue
        moved = (part["abstains"] - part["abstains_2"]).to_numpy()  # −1: only the first does not abstain
        interval = cluster_interval(100 * moved, part["group"].tolist()).interval
        only_first, only_second = int((moved < 0).sum()), int((moved > 0).sum())
        rows.append(
            {
                "first": first,
                "second": second,
                "property": name,
                "n": len(part),
                "only_first": only_first,
                "only_second": only_second,
                "difference": 100 * float(moved.mean()),
                "difference_low": interval.low,
                "difference_high": interval.high,
                "p": mcnemar_test(only_first, only_second).p,
            }
        )
    return rows


def _adjusted(rows: list[dict[str, object]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"].to_numpy(float))) if len(table) else table
