"""What attention, MLPs and single heads carry between item and control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.report.blocks import Block, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Patching of components"
INTRO = (
    "Instead of the whole residual stream only what attention or an MLP adds to it is put from one run into the "
    "other, and "
    "at the last token the output of single heads. The residual stream hands on what earlier layers wrote; these "
    "show who "
    "writes it."
)
SITES = {"attn_out": "what attention adds", "mlp_out": "what the MLP adds"}


def section(run: Run) -> Section | None:
    """The section, or None without a table `components` that has rows."""
    if not run.has("components"):
        return None
    table = run.tables["components"]
    blocks: list[Block] = []
    for site, words in SITES.items():
        if site in set(table["site"]):
            figure = plots.patch_by_role(table, site=site, caption=caption_of_run(run))
            alt = f"Effect of patching {words}, by layer and role."
            blocks.append(Picture.of(figure, alt=alt, caption=f"Only {words} is patched, in one layer at a time."))
    heads = table[(table["site"] == "z") & (table["direction"] == "control_to_item")]
    if len(heads):
        figure = plots.head_grid(
            heads, value="effect", title="Effect of patching one head at the last token", caption=caption_of_run(run)
        )
        alt = "Effect of patching each head from control into item, layer by head."
        blocks.append(
            Picture.of(figure, alt=alt, caption="Control patched into item, one head of one layer at a time.")
        )
    items = table["item"].nunique()
    blocks.append(
        Note(
            f"{plural(items, 'item')} measured: a look at where to look, not a test. The preset `full` measures "
            f"every item."
            if items < 6
            else f"{plural(items, 'item')} measured."
        )
    )
    return Section("components", TITLE, INTRO, (), tuple(blocks))
