"""From items to the rows of probes: one a prompt and role, and what the model knows of an item's facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from latentkt.errors import LatentKTError
from latentkt.internals.branches import Branches
from latentkt.internals.engines import engine_of
from latentkt.internals.metrics import Scorer
from latentkt.internals.pairs import RUN_COLUMNS, encode_run
from latentkt.internals.probes.activations import mean_over_roles, random_init

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle
    from latentkt.trapqa import TrapItem

__all__ = ["ROW_COLUMNS", "facts_known", "probe_rows"]

ROW_COLUMNS = (
    *RUN_COLUMNS,
    "correct",
    "shortcut",
    "log_odds",
    "role",
    "prompt_ids",
    "d_model",
    "residual",
    "random_init",
)


def probe_rows(
    model: ModelHandle | Engine,
    runs: Iterable[LensRun],
    *,
    roles: Sequence[str] = ("last",),
    random_layers: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """One row a prompt and role, with the residual stream there and that of a model with random weights.

    Args:
        model: An opened model, or an engine.
        runs: Prompts with their answers (`item_run`).
        roles: Where the residual stream is read: `last`, or the mean over the tokens of a role, special ones left out.
        random_layers: So many layers of the random model are run; 0 for no random model; None for all.
        seed: Seed of the random weights.

    Returns:
        The run's `meta`, `correct`, `shortcut` (the answers), `log_odds` (nats), `role`, `prompt_ids`, `d_model`,
        `residual` and `random_init`: [layer, d_model] as one flat list, entry 0 the embedding; the random one may be
        shorter, or empty.
    """
    import pandas as pd

    engine = engine_of(model)
    layers = engine.handle.n_layers if random_layers is None else random_layers
    drawn = random_init(engine.handle, seed=seed, layers=layers) if layers else None
    rows: list[dict[str, object]] = []
    for run in runs:
        answers = run.answers
        scorer = Scorer(Branches(tuple(run.prompt.ids), (tuple(answers.correct_ids), tuple(answers.shortcut_ids))))
        about = {**run.meta, "correct": answers.correct, "shortcut": answers.shortcut}
        about |= {"log_odds": engine.score(scorer).log_odds, "prompt_ids": list(run.prompt.ids)}
        about |= {"d_model": engine.handle.d_model}
        learned = mean_over_roles(engine, run.prompt, roles)
        fresh = mean_over_roles(drawn, run.prompt, roles) if drawn is not None else {}
        for role, residual in learned.items():
            random = fresh[role].ravel().tolist() if role in fresh else []
            rows.append({**about, "role": role, "residual": residual.ravel().tolist(), "random_init": random})
    return pd.DataFrame(rows, columns=list(ROW_COLUMNS))


def facts_known(
    handle: ModelHandle, items: Sequence[TrapItem], *, template: str, system: str | None
) -> dict[str, bool]:
    """Whether the model answers both probe questions of each item rightly (Yes against No, whole answers).

    Args:
        handle: The model.
        items: Items; those without both questions, or whose questions the model refuses, are left out.
        template: `chat` or `plain`.
        system: As in `latentkt.trapqa.render`.
    """
    from latentkt.models import score_answers
    from latentkt.trapqa import render_probe

    asked: list[str] = []
    runs: list[LensRun] = []
    for item in items:
        try:
            rendered = [
                render_probe(item, role, template=template, system=system, tokenizer=handle.tokenizer)  # type: ignore[arg-type]
                for role in ("eliminative", "compatibility")
            ]
            runs += [encode_run(handle, one, {}) for one in rendered]
        except LatentKTError:
            continue
        asked.append(item.id)
    if not runs:
        return {}
    odds = score_answers(handle, [run.prompt for run in runs], [run.answers for run in runs]).log_odds
    return {name: bool((odds[2 * n : 2 * n + 2] > 0).all()) for n, name in enumerate(asked)}
