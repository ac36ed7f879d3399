"""What is asked of a network: pairs of entities as options, and questions about each fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.synthetic.documents import Choices, Documents, choice_documents, question_documents, world_vocabulary
from latentkt.synthetic.templates import QUESTIONS

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.synthetic.world import World

__all__ = ["choice_items", "item_prompts", "question_items", "question_prompts"]


def choice_items(world: World) -> pd.DataFrame:
    """Every pair of options of one cluster, in every relation.

    `opposed` pairs are trap items or their knowledge-consistent counterparts: the polarity word fits `correct` alone,
    and each pair occurs twice, with either of them correct. In `same` pairs the word fits both, so nothing but
    frequency can decide; `shortcut` and `correct` are then only names for the two.

    Returns:
        One row an item: item, relation, cluster, pairing, shortcut, correct (entities by index), word (polarity that is
        stated), unseen (never the options of one document), log_prior_ratio (own relation, shortcut over correct,
        nats) and log_other_ratio (mean over the other relations; NaN where there is none).

    Example:
        >>> from latentkt.synthetic import WorldConfig, make_world
        >>> items = choice_items(make_world(WorldConfig(), seed=0))
        >>> items.groupby("pairing").size().to_dict()
        {'opposed': 2048, 'same': 960}
    """
    import pandas as pd

    parts = [_pairs(world, index, pairing) for index in range(len(world.relations)) for pairing in ("same", "opposed")]
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "item", np.arange(len(table)))
    return table


def _pairs(world: World, relation: int, pairing: str) -> pd.DataFrame:
    import pandas as pd

    shortcut, correct = np.nonzero(world.pairing_matrix(pairing)[relation])
    if pairing == "same":
        once = shortcut < correct
        shortcut, correct = shortcut[once], correct[once]
    cluster = world.cluster[relation, correct]
    never = np.array([item.opposed_share == 0 for item in world.clusters])[cluster] & (pairing == "opposed")
    ratios = np.log(world.counts)[:, shortcut] - np.log(world.counts)[:, correct]
    others = len(world.relations) - 1
    return pd.DataFrame(
        {
            "relation": world.relations[relation].name,
            "cluster": np.array([item.name for item in world.clusters], dtype=object)[cluster],
            "pairing": pairing,
            "shortcut": shortcut,
            "correct": correct,
            "word": world.polarity[relation, correct],
            "unseen": world.held_out[relation, shortcut, correct] | never,
            "log_prior_ratio": ratios[relation],
            "log_other_ratio": (ratios.sum(0) - ratios[relation]) / others if others else np.nan,
        }
    )


def item_prompts(world: World, items: pd.DataFrame, *, correct_first: bool, other_word: bool = False) -> Documents:
    """The items as documents; the answer stands at place -2.

    Args:
        world: The world.
        items: From `choice_items`.
        correct_first: Order of the options.
        other_word: State the other polarity: the control, in which `shortcut` of an opposed pair is right.
    """
    names = {relation.name: index for index, relation in enumerate(world.relations)}
    word = items["word"].to_numpy()
    correct = items["correct"].to_numpy()
    choices = Choices(
        relation=items["relation"].map(names).to_numpy(),
        key=correct,
        partner=items["shortcut"].to_numpy(),
        pairing=np.zeros(len(items), dtype=np.int64),
        word=1 - word if other_word else word,
        answer=correct,
        key_first=np.full(len(items), correct_first),
    )
    return choice_documents(world, world_vocabulary(world), choices, rng=np.random.default_rng(0))


def question_items(world: World) -> pd.DataFrame:
    """Every closed-book question: does an entity have an attribute? In every template, asked in training or not.

    Returns:
        One row a question: relation, entity, cluster (of the attribute), own (whether it is the entity's cluster),
        template, trained (whether this template and this entity were asked in training), right (the true answer).
    """
    import pandas as pd

    grid = np.meshgrid(
        np.arange(len(world.relations)), np.arange(len(world.entities)), np.arange(len(world.clusters)), indexing="ij"
    )
    relation, entity, cluster = (index.ravel() for index in grid)
    own = world.cluster[relation, entity] == cluster
    table = pd.DataFrame(
        {
            "relation": [world.relations[index].name for index in relation],
            "entity": entity,
            "cluster": cluster,
            "own": own,
            "right": own & (world.polarity[relation, entity] == 0),
        }
    )
    asked = ~np.isin(entity, world.never_asked)
    parts = [table.assign(template=name, trained=asked & (name not in world.held_out_templates)) for name in QUESTIONS]
    return pd.concat(parts, ignore_index=True)


def question_prompts(world: World, questions: pd.DataFrame, template: str) -> Documents:
    """The questions of one template as documents; the answer stands at place -2."""
    names = {relation.name: index for index, relation in enumerate(world.relations)}
    return question_documents(
        world,
        world_vocabulary(world),
        QUESTIONS[template],
        questions["relation"].map(names).to_numpy(),
        questions["entity"].to_numpy(),
        questions["cluster"].to_numpy(),
    )
