"""What can be known before a study begins: do its options fit together, does the model take its prompts?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latentkt.errors import DataError, InputError, LatentKTError

if TYPE_CHECKING:
    from latentkt.study.context import Context
    from latentkt.study.main import StudyOptions
    from latentkt.trapqa import TrapItem

__all__ = ["check_options", "check_prompts"]

SHOWN = 5
MAX_SEED = 2**32 - 1
"""The largest seed that every random generator in use takes."""


def check_options(
    options: StudyOptions, *, out: str | os.PathLike[str] | None, resume: bool, workers: int | None
) -> None:
    """Refuse options before anything is opened.

    Raises:
        InputError: A number is out of range, or an option needs another one.
        RunError: The folder cannot be begun in, or gone on with.
    """
    from latentkt.results import refuse_existing

    for name, value, low, high in (
        ("limit", options.limit, 1, None),
        ("workers", workers, 1, None),
        ("window", options.window, 1, None),
        ("seed", options.seed, 0, MAX_SEED),
    ):
        if value is not None and (value < low or (high is not None and value > high)):
            expected = f"{low} or more" if high is None else f"{low} to {high}"
            raise InputError(f"{name} is out of range", expected=expected, found=value)
    if options.template not in (None, "chat", "plain"):
        raise InputError("unknown template", expected="chat or plain", found=repr(options.template))
    if options.training_corpus and not options.corpus:
        raise InputError("a training corpus is spoken of, but none is named", fix="name it with --corpus")
    if out is not None:
        refuse_existing(out, resume=resume)
    elif resume:
        raise InputError(
            "a run to go on with is not named", expected="its folder", fix="name the folder of the run with --out"
        )


def check_prompts(context: Context, items: Sequence[TrapItem]) -> None:
    """Refuse items that the model cannot be asked, before a run is begun.

    Items of a file are the user's to mend, so one that cannot be asked is refused. Of the built-in set such items are
    left out and listed by the stages, unless none is left.

    Raises:
        LatentKTError: No item can be asked, for one reason that lies outside the items.
        DataError: Items cannot be asked; the file, the items and the reasons are named.
    """
    refused = {item.id: error for item in items if (error := _refusal(context, item)) is not None}
    if not refused or (context.options.items is None and len(refused) < len(items)):
        return
    reasons = {error.what for error in refused.values()}
    first = next(iter(refused.values()))
    if len(reasons) == 1 and len(items) == len(refused) > 1:
        raise first
    shown = [f"{error.what} (found: {error.found})" for error in list(refused.values())[:SHOWN]]
    more = [f"and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
    raise DataError(
        f"{context.options.items or 'built-in items'}: {len(refused)} of {len(items)} items cannot be asked of model "
        f"{context.handle.name!r}",
        expected="prompts that fit its context, and answers that its tokenizer tells apart",
        found="\n            ".join([*shown, *more]),
        fix=f"{first.fix or 'mend the items'} (items: {', '.join(list(refused)[:SHOWN])})",
    )


def _refusal(context: Context, item: TrapItem) -> LatentKTError | None:
    from latentkt.internals import item_run

    for order in ("correct_first", "shortcut_first"):
        for which in ("item", "control", "neutral"):
            try:
                item_run(
                    context.handle,
                    item,
                    which=which,
                    order=order,
                    template=context.template,
                    system=context.options.system,
                )
            except LatentKTError as error:
                return error
    return None
