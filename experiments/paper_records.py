"""One record set for each setting of the TrapQA paper that has all its published margins, and for all settings at once.

Published are counts, not records. The sets built here are one choice among many with those counts: which questions are
wrong, beyond the ten that all settings miss, is made up. What is made up changes no published figure.

Each setting's answers by probe state come from Tables 4 and 5, by fame from Tables 8 and 9; fame belongs to the
question, so all settings share it. Errors are placed so that 10 questions are missed by all eight and 1,489 by at least
one (H.3), and the questions with a candidate in the top 1 % by fame so that Section 5.3's counts come out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PAPER = Path(__file__).with_suffix("").with_name("paper_tables.json")
ROUNDING = 0.005 + 1e-9
# Eliminative and compatibility probe answered rightly, by state.
STATES = {"both": (True, True), "elim": (False, True), "compat": (True, False), "neither": (False, False)}
GOLD = (True, False)  # both probes ask whether the person has what the constraint denies the right one


def read_paper() -> dict[str, Any]:
    """The published figures."""
    return json.loads(PAPER.read_text(encoding="utf-8"))


def whole(n: int, *percents: tuple[int, float]) -> int:
    """The one count that prints as all the given percentages.

    Args:
        n: Its largest value.
        percents: Pairs (denominator, printed percentage).
    """
    found = [k for k in range(n + 1) if all(abs(100 * k / d - percent) <= ROUNDING for d, percent in percents)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} counts of {n} print as {percents}")
    return found[0]


def build(paper: Mapping[str, Any], *, seed: int = 0) -> pd.DataFrame:
    """Records of all settings of Tables 1 to 9 and of Table 11."""
    rng = np.random.default_rng(seed)
    n, famous = paper["n_questions"], paper["fame"]["n_wrong_more_famous"]
    ids = [f"question_{number:04d}" for number in range(1, n + 1)]
    consensus = [ids.index(name) for name in paper["consensus"]["question_ids"]]
    flags = _flags(n, famous, consensus, rng)
    wrong = _placed_errors(paper, flags, consensus, rng)
    fame = _fame(paper, flags, wrong, rng)
    families = [paper["consensus"]["families"].get(name) for name in ids]
    parts = []
    for setting, tables in paper["settings"].items():
        off = paper["off_option"]["total"] if paper["off_option"]["setting"] == setting else 0
        names = _names(tables, flags, wrong[setting], off, rng)
        names |= {"correct_fame": fame[:, 0], "shortcut_fame": fame[:, 1]}
        parts.append(
            pd.DataFrame({"question_id": ids, "setting": setting, "condition": "names", "family": families} | names)
        )
        errors = rng.permutation(n) < tables["table1"]["profiles_errors"]
        answer = np.where(errors, "shortcut", "correct")
        parts.append(pd.DataFrame({"question_id": ids, "setting": setting, "condition": "profiles", "answer": answer}))
    for setting, row in paper["table11"].items():
        everyday = [f"everyday_{number:03d}" for number in range(row["n"])]
        answer = np.where(np.arange(row["n"]) < row["errors"], "shortcut", "correct")
        parts.append(
            pd.DataFrame({"question_id": everyday, "setting": setting, "condition": "real_life", "answer": answer})
        )
    return pd.concat(parts, ignore_index=True)


def _flags(n: int, famous: int, consensus: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """In which questions the wrong candidate is the more famous; of the ten that all miss, in four."""
    rest = np.setdiff1d(np.arange(n), consensus)
    flags = np.zeros(n, dtype=bool)
    flags[list(consensus[:4])] = True
    flags[rng.permutation(rest)[: famous - 4]] = True
    return flags


def famous_errors(tables: Mapping[str, Any], n: int, famous: int) -> int:
    """Errors of a setting in which the wrong candidate is more famous, from the three percentages of Table 9."""
    errors, printed = tables["table1"]["names_errors"], tables["table9"]
    among = (errors, printed["wrong_more_famous_among_hall_pct"])
    found = whole(errors, among, (famous, printed["hall_wrong_more_famous_pct"]))
    assert abs(100 * (errors - found) / (n - famous) - printed["hall_wrong_not_more_famous_pct"]) <= ROUNDING
    return found


def _placed_errors(
    paper: Mapping[str, Any], flags: np.ndarray, consensus: Sequence[int], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Which questions each setting misses: the ten, and runs round a circle of as many others as are ever missed."""
    n = paper["n_questions"]
    wrong = {setting: np.zeros(n, dtype=bool) for setting in paper["settings"]}
    ever = paper["consensus"]["missed_by_at_least_one"]
    # Any split of the questions ever missed would do that no setting's errors exceed; this one is near the middle.
    for side, circle_size in ((True, 800), (False, ever - 800)):
        shared = [question for question in consensus if flags[question] == side]
        others = rng.permutation(np.setdiff1d(np.flatnonzero(flags == side), consensus))[: circle_size - len(shared)]
        place = 0
        for setting, tables in paper["settings"].items():
            of_famous = famous_errors(tables, n, int(flags.sum()))
            errors = of_famous if side else tables["table1"]["names_errors"] - of_famous
            steps = np.arange(place, place + errors - len(shared)) % len(others)
            wrong[setting][others[steps]] = wrong[setting][shared] = True
            place += errors - len(shared)
    return wrong


def _names(
    tables: Mapping[str, Any], flags: np.ndarray, wrong: np.ndarray, off: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Answers and probe answers of one setting in the names-only condition."""
    states = _states(tables, flags, wrong, rng)
    answer = np.where(wrong, "shortcut", "correct").astype(object)
    answer[rng.permutation(np.flatnonzero(wrong & (states == "both")))[:off]] = "off"
    columns: dict[str, Any] = {"answer": answer}
    for number, role in enumerate(("eliminative", "compatibility")):
        right = np.array([STATES[state][number] for state in states])
        columns[f"probe_{role}_correct"] = right
        columns[f"probe_{role}_predicted"] = right == GOLD[number]
    return columns


def _states(tables: Mapping[str, Any], flags: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The probe state of each question: Tables 4 and 5 fix how many are wrong in each, Table 8 how fame divides it."""
    t4, t5, t8 = tables["table4"], tables["table5"], tables["table8"]
    elim_wrong = whole(t5["n_missing_elim"], (t5["n_missing_elim"], t5["hall_elim_missed_pct"]))
    compat_wrong = whole(t5["n_missing_compat"], (t5["n_missing_compat"], t5["hall_compat_missed_pct"]))
    assert elim_wrong + compat_wrong == t4["one_wrong"]
    chosen = whole(t8["n_non_tie"], (t8["n_non_tie"], t8["chooses_more_famous_pct"]))
    of_wrong, of_right = split_of_choices(t4, chosen, int((wrong & flags).sum()), int((~wrong & ~flags).sum()), wrong)
    states = np.empty(len(flags), dtype=object)
    one = ["elim"] * elim_wrong + ["compat"] * compat_wrong
    rest = ["both"] * t4["both_wrong"] + ["neither"] * t4["neither_wrong"]
    _deal(states, wrong & flags, wrong & ~flags, one, of_wrong, rest, rng)
    one = ["elim"] * (t5["n_missing_elim"] - elim_wrong) + ["compat"] * (t5["n_missing_compat"] - compat_wrong)
    rest = ["both"] * t4["both_correct"] + ["neither"] * t4["neither_correct"]
    _deal(states, ~wrong & ~flags, ~wrong & flags, one, of_right, rest, rng)
    return states


def split_of_choices(
    t4: Mapping[str, int], chosen: int, wrong_famous: int, right_other: int, wrong: np.ndarray
) -> tuple[int, int]:
    """Of the `chosen` answers for the more famous candidate in knows-one cases, how many are wrong and how many right.

    The first is one of the counts that leave room for everything else; of these the one nearest to proportion.
    """
    errors = int(wrong.sum())
    right_famous = len(wrong) - errors - right_other
    possible = [
        x
        for x in range(max(0, chosen - t4["one_correct"]), min(t4["one_wrong"], chosen) + 1)
        if x <= wrong_famous
        and t4["one_wrong"] - x <= errors - wrong_famous
        and chosen - x <= right_other
        and t4["one_correct"] - (chosen - x) <= right_famous
    ]
    if not possible:
        raise ValueError("the margins cannot hold together")
    aim = t4["one_wrong"] * wrong_famous / max(errors, 1)
    x = min(possible, key=lambda count: abs(count - aim))
    return x, chosen - x


def _deal(
    states: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    one: list[str],
    ones_in_first: int,
    rest: list[str],
    rng: np.random.Generator,
) -> None:
    """Deal states to two groups of questions: so many of `one` to the first, the rest as there is room."""
    one, rest = list(rng.permutation(one)), list(rng.permutation(rest))
    room = int(first.sum()) - ones_in_first
    for inside, hand in ((first, one[:ones_in_first] + rest[:room]), (second, one[ones_in_first:] + rest[room:])):
        states[np.flatnonzero(inside)] = rng.permutation(np.array(hand, dtype=object))


def _fame(
    paper: Mapping[str, Any], flags: np.ndarray, wrong: Mapping[str, np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Fame of right and wrong candidate; a few candidates of the top 1 % stand in as many questions as published."""
    n, published = len(flags), paper["fame"]["top1"]
    values = np.sort(rng.permutation(2 * n)[: 2 * n].reshape(n, 2) / (4 * n), axis=1)
    (first, second) = published
    one, other = wrong[first], wrong[second]
    groups = (one & ~other, other & ~one, one & other, ~one & ~other)
    sizes = (published[first]["in_top1_wrong"], published[second]["in_top1_wrong"])
    shared = max(0, *(size - int(group.sum()) for size, group in zip(sizes, groups, strict=False)))
    sizes = (sizes[0] - shared, sizes[1] - shared, shared, paper["fame"]["n_top1pct"] - sum(sizes) + shared)
    top = np.concatenate(
        [rng.permutation(np.flatnonzero(group))[:size] for group, size in zip(groups, sizes, strict=True)]
    )
    others = 2 * n - len(top)
    stars = next(k for k in range(1, n) if int(0.01 * (others + k)) == k)
    values[top, 1] = 0.9 + 0.1 * (np.arange(len(top)) % stars + 1) / stars
    return np.where(flags[:, None], values, values[:, ::-1])
