"""Ask a network trained on an action world: conflicts in both orders, and each cue alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.synthetic.actions import action_items, action_prompts
from latentkt.synthetic.measure import add_distances, answer_log_probabilities

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.synthetic.actions import ActionStream
    from latentkt.synthetic.measure import Logits

__all__ = ["action_answers", "action_gap", "action_probes"]


def action_answers(logits: Logits, stream: ActionStream, *, known: pd.DataFrame) -> pd.DataFrame:
    """Every conflict in both orders, with the columns of `measure.answers`.

    `shortcut` is the surface cue and its action, `correct` the constraint cue and its action. There is no word to
    exchange: `dominance_control` is NaN.
    """
    import pandas as pd

    items = action_items(stream.world)
    surface, constraint = items["shortcut"].to_numpy(), items["correct"].to_numpy()
    words = np.array([stream.vocabulary.id_array(pair) for pair in stream.world.actions])
    domain, action = np.array(stream.world.domain), np.array(stream.world.action)
    rows = np.arange(len(items))
    right = known.set_index("entity")["is_right"]
    parts = []
    for correct_first in (True, False):
        cue, partner = (constraint, surface) if correct_first else (surface, constraint)
        log_p = answer_log_probabilities(logits, action_prompts(stream, cue, partner, cue_first=True))
        log_s, log_0 = (log_p[rows, words[domain[cues], action[cues]]] for cues in (surface, constraint))
        table = items.assign(order="correct_first" if correct_first else "shortcut_first")
        table["p_shortcut"], table["p_correct"] = np.exp(log_s), np.exp(log_0)
        table["dominance"], table["dominance_control"] = log_s - log_0, np.nan
        table["bayes_dominance"] = stream.world.answer_odds(surface, constraint)
        table["knows_shortcut"], table["knows_correct"] = right[surface].to_numpy(), right[constraint].to_numpy()
        parts.append(add_distances(table))
    return pd.concat(parts, ignore_index=True)


def action_probes(logits: Logits, stream: ActionStream) -> pd.DataFrame:
    """Each cue alone: does the network give its action? Columns as in `measure.probes`."""
    import pandas as pd

    world = stream.world
    cue = np.arange(len(world.cues))
    words = np.array([stream.vocabulary.id_array(pair) for pair in world.actions])
    domain, action = np.array(world.domain), np.array(world.action)
    log_p = answer_log_probabilities(logits, action_prompts(stream, cue, np.full_like(cue, -1), cue_first=True))
    odds = log_p[cue, words[domain, action]] - log_p[cue, words[domain, 1 - action]]
    return pd.DataFrame(
        {
            "relation": "action", "entity": cue, "cluster": domain, "own": True, "right": True,
            "template": "single_cue", "trained": True, "log_odds_yes": odds, "is_right": odds > 0,
        }
    )  # fmt: skip


def action_gap(logits: Logits, stream: ActionStream) -> pd.DataFrame:
    """Loss on answers of fresh documents beside the exact predictor's; columns as in `measure.answer_gap`."""
    import pandas as pd

    documents, floor = stream.draw([stream.world.seed, 24])
    log_p = answer_log_probabilities(logits, documents)
    return pd.DataFrame({"nll": -log_p[np.arange(len(floor)), documents.ids[:, -2]], "bayes_nll": floor})
