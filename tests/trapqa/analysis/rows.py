"""Small records, and the tables computed from them again, slowly and by other means."""

from __future__ import annotations

import random
from typing import Any


def records(*, settings=("m/low", "m/high"), n=60, missing=0.0, seed=0) -> list[dict[str, Any]]:
    """Names and profiles records of each setting, probes and fame in the names ones, golds of both polarities."""
    rng = random.Random(seed)
    fame = {i: (rng.random(), rng.random()) for i in range(n)}
    gold = {i: (rng.random() < 0.6, rng.random() < 0.4) for i in range(n)}
    rows = []
    for setting in settings:
        for i in range(n):
            base = {"question_id": f"q{i:03d}", "setting": setting, "family": f"f{i % 5}"}
            right = [rng.random() < 0.75, rng.random() < 0.7]
            predicted = [right[k] == gold[i][k] for k in (0, 1)]
            row = {
                **base,
                "condition": "names",
                "order": rng.choice(["correct_first", "shortcut_first"]),
                "answer": rng.choices(["correct", "shortcut", "distractor", "off"], [6, 2, 1, 0.5])[0],
                "probe_eliminative_correct": right[0],
                "probe_compatibility_correct": right[1],
                "probe_eliminative_predicted": predicted[0],
                "probe_compatibility_predicted": predicted[1],
                "confidence": rng.choice([40, 75, 90.5, 100]),
                "correct_fame": fame[i][0],
                "shortcut_fame": fame[i][1],
            }
            for name in list(row)[5:]:
                if not name.endswith("_fame") and rng.random() < missing:
                    row[name] = None
            rows.append(row)
            answer = rng.choices(["correct", "shortcut"], [9, 1])[0]
            rows.append({**base, "condition": "profiles", "answer": answer, "order": None})
    return rows


def share(hits: int, n: int) -> float | None:
    return 100 * hits / n if n else None


def slow_tables(rows: list[dict[str, Any]], setting: str) -> dict[str, dict[str, Any]]:
    """The paper's tables by plain counting."""
    own = [r for r in rows if r["setting"] == setting]
    names = [r for r in own if r["condition"] == "names" and r["answer"] is not None]
    profiles = [r for r in own if r["condition"] == "profiles"]
    wrong = lambda group: sum(r["answer"] != "correct" for r in group)  # noqa: E731
    elim, compat = "probe_eliminative_correct", "probe_compatibility_correct"
    probed = [r for r in names if r[elim] is not None and r[compat] is not None]
    state = {k: [r for r in probed if r[elim] + r[compat] == k] for k in (0, 1, 2)}
    bad = [r for r in probed if r["answer"] != "correct"]
    good = [r for r in probed if r["answer"] == "correct"]
    no_elim, no_compat = [r for r in state[1] if not r[elim]], [r for r in state[1] if not r[compat]]
    said = [
        (r["probe_eliminative_predicted"], r["probe_compatibility_predicted"])
        for r in state[1]
        if r["probe_eliminative_predicted"] is not None and r["probe_compatibility_predicted"] is not None
    ]
    more = lambda r: r["shortcut_fame"] > r["correct_fame"]  # noqa: E731
    decided = [r for r in state[1] if r["answer"] != "off" and r["shortcut_fame"] != r["correct_fame"]]
    chose = sum(more(r) == (r["answer"] != "correct") for r in decided)
    famous, other = [r for r in names if more(r)], [r for r in names if not more(r)]
    sure = [r for r in names if r["confidence"] is not None]
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    conf_right = mean([r["confidence"] for r in sure if r["answer"] == "correct"])
    conf_wrong = mean([r["confidence"] for r in sure if r["answer"] != "correct"])
    return {
        "table1": {
            "names_errors": wrong(names),
            "names_rate_pct": share(wrong(names), len(names)),
            "names_off_option": sum(r["answer"] == "off" for r in names),
            "profiles_errors": wrong(profiles),
            "profiles_rate_pct": share(wrong(profiles), len(profiles)),
        },
        "table2": {
            "pairwise_hall_pct": share(len(bad), len(probed)),
            "both_probes_correct_pct": share(len(state[2]), len(probed)),
            "hall_given_both_pct": share(wrong(state[2]), len(state[2])),
            "hall_given_not_both_pct": share(wrong(state[0]) + wrong(state[1]), len(state[0]) + len(state[1])),
            "known_fact_hall_pct": share(wrong(state[2]), len(bad)),
            "probe_absent_hall_pct": share(wrong(state[0]), len(bad)),
        },
        "table4": {
            "both_correct": len(state[2]) - wrong(state[2]),
            "one_wrong": wrong(state[1]),
            "one_wrong_rate_pct": share(wrong(state[1]), len(state[1])),
            "neither_correct": len(state[0]) - wrong(state[0]),
            "neither_wrong": wrong(state[0]),
        },
        "table5": {
            "n_missing_elim": len(no_elim),
            "n_missing_compat": len(no_compat),
            "hall_elim_missed_pct": share(wrong(no_elim), len(no_elim)),
            "gap_pp": share(wrong(no_elim), len(no_elim)) - share(wrong(no_compat), len(no_compat)),
        },
        "table7": {
            "n_underdetermined": len(state[1]),
            "pct_of_questions": share(len(state[1]), len(probed)),
            "accuracy_pct": 100 - share(wrong(state[1]), len(state[1])),
            "both_predicted_false_pct": share(said.count((False, False)), len(said)),
            "both_predicted_true_pct": share(said.count((True, True)), len(said)),
        },
        "table8": {
            "n_non_tie": len(decided),
            "derived_successes": chose,
            "chooses_more_famous_pct": share(chose, len(decided)),
        },
        "table9": {
            "hall_wrong_more_famous_pct": share(wrong(famous), len(famous)),
            "hall_wrong_not_more_famous_pct": share(wrong(other), len(other)),
            "wrong_more_famous_among_hall_pct": share(wrong(famous), wrong(names)),
        },
        "table10": {"conf_correct": conf_right, "conf_hallucinated": conf_wrong, "gap": conf_wrong - conf_right},
        "h6": {"correct_in_both_pct": share(len([r for r in state[2] if r["answer"] == "correct"]), len(good))},
    }
