"""Small result tables with a known mechanism, and a run that holds them, for the tests of figures and report."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from latentkt.results import create_run, library_versions

FAMILIES = {
    "scientist": ["nobel_physics", "nobel_chemistry", "born_before", "died_after", "nobel_medicine", "nobel_twice"],
    "action": [
        "vehicle_required",
        "delivery_medium",
        "recording_medium",
        "tool_required",
        "presence_required",
        "timing_order",
        "capacity_or_fit",
        "power_or_connection",
    ],
}
ORDERS = ("correct_first", "shortcut_first")
LAYERS = range(-1, 12)


def items(per_family: int = 5) -> pd.DataFrame:
    rows = [
        {
            "item": f"{family}-{index}",
            "kind": kind,
            "family": family,
            "polarity": "negated" if index % 2 else "affirmed",
        }
        for kind, families in FAMILIES.items()
        for family in families
        for index in range(per_family)
    ]
    return pd.DataFrame(rows)


def answers(*, effect: float = 0.6, first: float = 1.5, seed: int = 0) -> pd.DataFrame:
    """`effect` nats between item and control in the mean, `first` nats for being listed first."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in items().to_dict("records"):
        level, own = rng.normal(0, 1.2), effect + rng.normal(0, 0.4)
        for which, order in product(("item", "control", "neutral"), ORDERS):
            shift = {"item": own / 2, "control": -own / 2, "neutral": 0.0}[which]
            sign = 1 if order == "correct_first" else -1
            value = level + shift + sign * first + rng.normal(0, 0.1)
            right = {"item": "correct", "control": "shortcut", "neutral": None}[which]
            rows.append({**item, "which": which, "order": order, "template": "chat", "right": right, "log_odds": value})
    return pd.DataFrame(rows)


def lens(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for item in items(2).to_dict("records"):
        level = rng.normal()
        for which, order, layer in product(("item", "control"), ORDERS, LAYERS):
            grown = 1 / (1 + np.exp(6 - layer))
            value = level * grown + (0.5 if which == "item" else -0.5) * grown + rng.normal(0, 0.1)
            rows.append(
                {
                    **item,
                    "which": which,
                    "order": order,
                    "layer": layer,
                    "position": "last",
                    "first_token_log_odds": value,
                }
            )
    return pd.DataFrame(rows)


def patch(seed: int = 2, *, planted: float = 1.0) -> pd.DataFrame:
    """The constraint's tokens carry the effect early, the last token late; the shortcut's tokens carry none."""
    rng = np.random.default_rng(seed)
    rows = []
    directions = {"control_to_item": (-1, "item", "control"), "item_to_control": (1, "control", "item")}
    for item in items(2).to_dict("records"):
        for order, (direction, (sign, base, source)) in product(ORDERS, directions.items()):
            for role, layer in product(("shortcut", "constraint", "last"), range(12)):
                late = 1 / (1 + np.exp(6 - layer))
                share = {"shortcut": 0.0, "constraint": 1 - late, "last": late}[role]
                effect = sign * planted * share + rng.normal(0, 0.15)
                cell = {"site": "resid_post", "layer": layer, "role": role, "metric": "log_odds", "effect": effect}
                rows.append({**item, "order": order, "direction": direction, "base": base, "source": source, **cell})
    frame = pd.DataFrame(rows)
    gone = (frame["item"] == "nobel_physics-0") & (frame["role"] == "constraint")
    return frame.assign(effect=frame["effect"].mask(gone))


def probe(seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for fold, layer in product(range(5), LAYERS):
        bag = 0.5 + 0.02 * fold
        score = float(np.clip(0.5 + 0.03 * max(layer, 0) + rng.normal(0, 0.03), 0, 1))
        cells = {"n_train": 96, "n_test": 24, "score": score, "bag_score": bag, "majority_score": 0.5, "C": 0.1}
        about = {"target": "answer_side", "kind": "logistic", "split": "generalisation", "role": "last", "fold": fold}
        rows.append({**about, "layer": layer, **cells})
    return pd.DataFrame(rows)


def probe_layers(folds: pd.DataFrame | None = None) -> pd.DataFrame:
    """The folds of `probe` by layer, and a second split in which the control task is learned by heart a little."""
    folds = probe() if folds is None else folds
    means = folds.groupby(["target", "kind", "split", "role", "layer"], as_index=False)[
        ["score", "bag_score", "majority_score"]
    ].mean()
    gain = means["score"] - means["bag_score"]
    means = means.assign(gain=gain, gain_low=gain - 0.05, gain_high=gain + 0.05, embedding_score=0.5)
    means = means.assign(random_init_score=0.52, random_init_low=0.45, random_init_high=0.6)
    means = means.assign(evidence=gain > 0.05, control_score=np.nan, control_low=np.nan, control_high=np.nan)
    memory = means.assign(split="selectivity", bag_score=np.nan, evidence=False, gain=np.nan, random_init_score=np.nan)
    memory = memory.assign(control_score=0.55, control_low=0.5, control_high=0.6, embedding_score=np.nan)
    both = pd.concat([means, memory], ignore_index=True)
    for name in ("", "bag_"):
        both = both.assign(**{f"{name}low": both[f"{name}score"] - 0.06, f"{name}high": both[f"{name}score"] + 0.06})
    return both.assign(selectivity=both["score"] - both["control_score"], n_rows=120, n_groups=14, reason="")


def verdict() -> pd.DataFrame:
    """Two items of a family were patched; the rest were only asked. Shelves exist at four levels."""
    rows = []
    for number, item in enumerate(items(2).to_dict("records")):
        patched = number < 2
        odds = -1.2 if number % 3 else 1.4
        rows.append(
            {
                **item,
                "group": f"g{number // 4}" if item["kind"] == "action" else None,
                "level": float(number % 4) if item["kind"] == "action" else np.nan,
                "answer": "shortcut followed" if odds < 0 else "solved",
                "constraint": ("read but outweighed" if odds < 0 else "read and decisive")
                if patched
                else "not measurable",
                "log_odds": odds,
                "log_odds_correct_first": odds + 0.5,
                "log_odds_shortcut_first": odds - 0.5,
                "constraint_effect": 0.4 + 0.1 * (number % 4),
                "effect": 1.6 if patched else np.nan,
                "threshold": 0.7 if patched else np.nan,
                "n_placebo": 40,
                "sureness": 0.9 if patched else np.nan,
                "n_combinations": 20 if patched else 0,
                "decision_layer": 9.0 if patched else np.nan,
                "reason": "" if patched else "no patch was measured",
            }
        )
    return pd.DataFrame(rows)


def steer() -> pd.DataFrame:
    """The direction moves the answer by a nat or two; what has its length and points elsewhere, by a tenth."""
    rng = np.random.default_rng(5)
    rows = []
    ways = [("add", -1.0), ("add", 1.0), ("remove", 1.0), ("interchange", 1.0)]
    controls = ["", "arbitrary labels", "read", "unread", *(f"random {n}" for n in range(5))]
    place = {"site": "resid_post", "layer": 6, "role": "last", "axis": "answer_side", "order": "correct_first"}
    for item, (how, strength), control in product(items(1).to_dict("records"), ways, controls):
        size = 1.5 * strength if control in ("", "read") else 0.1
        for model in ("trained", "random weights"):
            value = rng.normal(size if model == "trained" else 0.0, 0.05)
            rows.append(
                {**item, **place, "how": how, "strength": strength, "control": control, "model": model, "effect": value}
            )
    return pd.DataFrame(rows)


def steer_text() -> pd.DataFrame:
    rows = [("none", 0.0, "Drive."), ("add", 1.0, "Drive there."), ("add", -1.0, "Walk.")]
    return pd.DataFrame([{"prompt": "a", "how": h, "strength": s, "control": "", "text": t} for h, s, t in rows])


def explicitness() -> pd.DataFrame:
    from latentkt.internals import dose_response

    return dose_response(verdict())


def skipped() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item": ["born_before-3", "born_before-4", "nobel_physics-0"],
            "stage": ["answers", "answers", "patch"],
            "reason": ["the prompt's ids are no prefix of prompt + answer"] * 2 + ["the constraint spans do not align"],
        }
    )


def trapqa_table11() -> pd.DataFrame:
    rates = {"rate_pct": 40.0, "rate_pct_low": 26.4, "rate_pct_high": 55.4, "family_mean_pct": 40.0}
    return pd.DataFrame([{"setting": "smollm2", "errors": 16, "n": 40, "off_option": 0, **rates}])


def trapqa(seed: int = 4) -> pd.DataFrame:
    """Records of the running of TrapQA: the question is worth 0.6 nats beyond the options alone."""
    rng = np.random.default_rng(seed)
    rows = []
    for item, order in product(items().to_dict("records"), ORDERS):
        alone = rng.normal(0, 1)
        own = "names" if item["kind"] == "scientist" else "real_life"
        for condition, value in (("neutral", alone), (own, alone + 0.6 + rng.normal(0, 0.2))):
            side = "correct" if value > 0 else "shortcut"
            rows.append(
                {
                    "question_id": item["item"],
                    "setting": "smollm2",
                    "condition": condition,
                    "order": order,
                    "answer": side,
                    "probe_eliminative_correct": None,
                    "probe_compatibility_correct": None,
                    "family": item["family"],
                    "kind": item["kind"],
                    "log_odds": value,
                }
            )
    return pd.DataFrame(rows)


TABLES = {
    "answers": answers,
    "lens": lens,
    "patch": patch,
    "probe": probe,
    "probe_layers": probe_layers,
    "steer": steer,
    "steer_text": steer_text,
    "verdict": verdict,
    "explicitness": explicitness,
    "skipped": skipped,
    "trapqa": trapqa,
    "trapqa_table11": trapqa_table11,
}

IDENTITY = {
    "model": {
        "model": "smollm2",
        "architecture": "LlamaForCausalLM",
        "weight_hash": "3f8e2c9a51d04b7786aa90c4e1d2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4",
        "dtype": "float32",
        "attn_implementation": "eager",
        "device": "cpu",
        "n_layers": 12,
    },
    "items": {"name": "built-in", "sha256": "9b1c" * 16, "n_items": 70},
    "preset": "quick",
    "seeds": {"items": 0, "probe": 0},
    "options": {"template": "chat", "limit": None},
    "versions": library_versions(),
}


def write_run(path: Path, *, leave_out: tuple[str, ...] = (), **changed: pd.DataFrame) -> Path:
    """A finished run with all tables but those left out; `changed` replaces some."""
    with create_run(path, metadata=IDENTITY, command=["latentkt", "study", "smollm2", "--out", "runs/example"]) as run:
        for name, make in TABLES.items():
            if name not in leave_out:
                run.save(name, changed[name] if name in changed else make())
        run.finish()
    return path
