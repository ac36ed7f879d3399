"""The check report as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from latentkt.trapqa.check import CheckReport, TokenReport

__all__ = ["report_lines"]


def report_lines(report: CheckReport) -> Iterator[str]:
    """The report, one figure or one table row a line."""
    yield f"{report.n_items} items, all valid"
    for field, values in report.counts.items():
        yield f"  {field + ':':<17} " + ", ".join(f"{value} {n}" for value, n in values.items())
    yield f"  {'with paths:':<17} {report.with_paths}, every path with a pattern"
    if report.probe_golds:
        yield "probe questions whose right answer is yes"
        for (role, polarity), share in report.probe_golds.items():
            yield f"  {role + ', ' + polarity:<26} {share}"
    yield "the right answer is shown first"
    for (which, order), share in report.gold_first.items():
        yield f"  {which + ', ' + order:<26} {share}"
    yield "where things stand in the question"
    yield f"  constraint after shortcut  {report.constraint_after_shortcut}"
    for kind, place in report.constraint_place.items():
        yield f"  constraint begins at       {place:.2f} of the text on average ({kind})"
    yield "answers"
    yield f"  correct is longer          {report.correct_longer}"
    yield f"  shortcut is longer         {report.shortcut_longer}"
    yield "  mean characters            correct {:.1f}, shortcut {:.1f}".format(*report.answer_characters)
    yield f"  correct first in alphabet  {report.first_by_alphabet}"
    if report.tokens is not None:
        yield from _token_lines(report.tokens)
    notices = report.notices
    yield f"notices: {len(notices) or 'none'}"
    yield from (f"  {notice}" for notice in notices)


def _token_lines(tokens: TokenReport) -> Iterator[str]:
    yield f"tokens of {tokens.model}, {tokens.template} prompts"
    yield f"  item as long as control    {tokens.equal_length}"
    yield f"  spans equally long         {tokens.equal_spans}"
    yield f"  longest prompt             {tokens.longest} tokens"
    yield f"  correct answer is longer   {tokens.correct_longer}"
    yield f"  shortcut answer is longer  {tokens.shortcut_longer}"
