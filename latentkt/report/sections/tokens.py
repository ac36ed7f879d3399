"""Single items, token by token: where the control's activations change the answer, and what the lens reads there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.report.blocks import Block, Note, Picture, Section
from latentkt.report.wording import caption_of_run

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Token by token"
INTRO = (
    "For single items: the control's residual stream is put into the item at one token after one layer (every "
    "fifth), with the "
    "tokens written "
    "out and coloured by role. Tokens in front of the first difference are the same in both and are left out."
)
SHOWN = 4
"""Items that are drawn; the table holds all."""


def section(run: Run) -> Section | None:
    """The section, or None without a table `patch_tokens` that has rows."""
    if not run.has("patch_tokens"):
        return None
    table = run.tables["patch_tokens"]
    blocks: list[Block] = []
    cells = list(table.groupby(["item", "order"], sort=True, observed=True))
    for (item, order), rows in cells[:SHOWN]:
        blocks.append(_picture(str(item), str(order), rows, run))
    blocks.append(
        Note(
            f"{min(SHOWN, len(cells))} of {len(cells)} prompts are drawn; tables `patch_tokens` and `lens_tokens` "
            f"hold all."
        )
    )
    return Section("tokens", TITLE, INTRO, (), tuple(blocks))


def _picture(item: str, order: str, rows: pd.DataFrame, run: Run) -> Picture:
    live = rows[~rows["unchanged"].astype(bool)]
    first = int(live["position"].min()) if len(live) else 0
    largest = rows.iloc[int(rows["effect"].abs().to_numpy().argmax())]
    title = f"{item}: control patched into item"
    figure = plots.layer_by_token(rows, first=first, title=title, caption=f"{order}, {caption_of_run(run)}")
    alt = (
        f"Effect by layer and token of {item}; the largest is {largest['effect']:+.2f} nats at token "
        f"{str(largest['token']).strip()!r} after layer {int(largest['layer'])}."
    )
    return Picture.of(figure, alt=alt, caption="Change of the log-odds of y* over y_s, in nats.")
