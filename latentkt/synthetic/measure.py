"""Ask a trained network: answers, probes, distance to the exact and the ideal predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.synthetic.exact import answer_probability, bayes_dominance
from latentkt.synthetic.items import choice_items, item_prompts, question_items, question_prompts
from latentkt.synthetic.templates import NO, YES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from jaxtyping import Float

    from latentkt.synthetic.documents import Documents
    from latentkt.synthetic.streams import FactStream

    Logits = Callable[[torch.Tensor], torch.Tensor]

__all__ = ["add_distances", "answer_gap", "answer_log_probabilities", "answers", "probes"]

BATCH = 1024


def answer_log_probabilities(logits: Logits, documents: Documents) -> Float[np.ndarray, "document vocab"]:
    """Log P(next token) at the end of each prompt (the documents end with answer and newline).

    Args:
        logits: The model: ids (batch, pos) to logits (batch, pos, vocab).
        documents: All of one length.
    """
    prompts = torch.from_numpy(documents.ids[:, :-2])
    with torch.no_grad():
        parts = [logits(part)[:, -1].double().log_softmax(-1) for part in prompts.split(BATCH)]
    return torch.cat(parts).cpu().numpy()


def answers(logits: Logits, stream: FactStream, *, known: pd.DataFrame) -> pd.DataFrame:
    """Every item in both orders of its options.

    Args:
        logits: The model.
        stream: Of the world that it was trained on.
        known: From `probes`; gives `knows_shortcut` and `knows_correct`.

    Returns:
        One row an item and order, with the columns of `choice_items` and: order; p_shortcut, p_correct, off_options
        (mass outside the two); dominance = log P(y_s) - log P(y*); dominance_control (polarity word exchanged);
        bayes_dominance (NaN where the corpus defines none); tv_ideal, tv_bayes, tv_bayes_ideal (model or corpus against
        the noise-free constraint, and model against corpus) and tv_floor = (γ + γ*)/2, all NaN where not defined;
        knows_shortcut, knows_correct.
    """
    import pandas as pd

    world = stream.world
    items = choice_items(world)
    names = {relation.name: index for index, relation in enumerate(world.relations)}
    columns = [items["relation"].map(names), items["shortcut"], items["correct"], items["word"]]
    bayes = bayes_dominance(world, *(column.to_numpy() for column in columns))
    parts = []
    for correct_first in (True, False):
        item = _options(logits, stream, items, correct_first=correct_first, other_word=False)
        control = _options(logits, stream, items, correct_first=correct_first, other_word=True)
        table = items.assign(order="correct_first" if correct_first else "shortcut_first")
        table["p_shortcut"], table["p_correct"] = np.exp(item[0]), np.exp(item[1])
        table["dominance"], table["dominance_control"] = item[0] - item[1], control[0] - control[1]
        table["bayes_dominance"] = bayes
        parts.append(add_distances(table))
    result = pd.concat(parts, ignore_index=True)
    right = known.set_index(["relation", "entity"])["is_right"]
    for role in ("shortcut", "correct"):
        result[f"knows_{role}"] = right.loc[list(zip(result["relation"], result[role], strict=True))].to_numpy()
    return result


def _options(
    logits: Logits, stream: FactStream, items: pd.DataFrame, *, correct_first: bool, other_word: bool
) -> tuple[np.ndarray, np.ndarray]:
    documents = item_prompts(stream.world, items, correct_first=correct_first, other_word=other_word)
    log_p = answer_log_probabilities(logits, documents)
    entity = stream.vocabulary.id_array(stream.world.entities)
    rows = np.arange(len(items))
    return log_p[rows, entity[items["shortcut"]]], log_p[rows, entity[items["correct"]]]


def add_distances(table: pd.DataFrame) -> pd.DataFrame:
    """Total variation to the ideal predictor, the corpus' part and the network's, and Theorem 3.6's floor."""
    table["off_options"] = 1 - table["p_shortcut"] - table["p_correct"]
    opposed = table["pairing"] == "opposed"
    bayes = 1 / (1 + np.exp(-table["bayes_dominance"]))
    model_s, model_0 = table["p_shortcut"], table["p_correct"]
    table["tv_ideal"] = (1 - model_0).where(opposed)
    table["tv_bayes"] = ((model_s - bayes).abs() + (model_0 - 1 + bayes).abs() + table["off_options"]) / 2
    table["tv_bayes_ideal"] = bayes.where(opposed)
    table["tv_floor"] = ((model_s - model_0 + 1) / 2).where(opposed)
    return table


def probes(logits: Logits, stream: FactStream) -> pd.DataFrame:
    """Closed-book questions; `is_right` says whether the right one of yes and no is the likelier."""
    import pandas as pd

    questions = question_items(stream.world)
    yes, no = stream.vocabulary.id(YES), stream.vocabulary.id(NO)
    parts = []
    for template, part in questions.groupby("template", sort=False):
        log_p = answer_log_probabilities(logits, question_prompts(stream.world, part, str(template)))
        odds = log_p[:, yes] - log_p[:, no]
        parts.append(part.assign(log_odds_yes=odds, is_right=(odds > 0) == part["right"].to_numpy()))
    return pd.concat(parts, ignore_index=True)


def answer_gap(logits: Logits, stream: FactStream) -> pd.DataFrame:
    """Loss on answers of fresh choice documents of the same corpus, beside the exact predictor's on the same ones.

    Returns:
        One row a document: nll and bayes_nll in nats. The mean difference is the divergence of the network from the
        corpus; below 0 it can be by sampling error only.
    """
    import pandas as pd

    fresh = stream.fresh()
    log_p = answer_log_probabilities(logits, fresh.choice_documents)
    entity = stream.vocabulary.id_array(stream.world.entities)
    nll = -log_p[np.arange(len(log_p)), entity[fresh.choices.answer]]
    return pd.DataFrame({"nll": nll, "bayes_nll": -np.log(answer_probability(stream.world, fresh.choices))})
