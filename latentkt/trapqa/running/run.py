"""Ask a model on this machine, and keep what it answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.progress import progress
from latentkt.results import library_versions
from latentkt.trapqa.items import ItemSet
from latentkt.trapqa.rendering import Template
from latentkt.trapqa.running.asking import ask
from latentkt.trapqa.running.journal import RECORDS, open_journal
from latentkt.trapqa.running.options import RunOptions
from latentkt.trapqa.running.questions import Skipped, grouped, plan_questions
from latentkt.trapqa.running.records import Record, join_probes
from latentkt.trapqa.running.sources import Source, load_source

if TYPE_CHECKING:
    from latentkt.models import ModelHandle

__all__ = ["Summary", "run_trapqa"]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did.

    Attributes:
        path: The records.
        records: All records in the file.
        asked: Questions that were asked now.
        kept: Questions that the file held already.
        dropped: Half-written lines that were cut off, whose questions were asked again.
        skipped: What was not asked, with the reason.
    """

    path: Path
    records: tuple[Record, ...]
    asked: int
    kept: int
    dropped: int
    skipped: tuple[Skipped, ...]

    def lines(self) -> list[str]:
        """The summary in a few lines of text."""
        counts = Counter((r.condition, r.answer) for r in self.records if r.condition != "probes")
        answers = [
            f"  {condition}: " + ", ".join(f"{counts[condition, a]} {a}" for a in ("correct", "shortcut", "off"))
            for condition in dict.fromkeys(r.condition for r in self.records if r.condition != "probes")
        ]
        probes = [r for r in self.records if r.condition == "probes"]
        if probes:
            known = Counter(
                (r.probe_eliminative_correct is True) + (r.probe_compatibility_correct is True) for r in probes
            )
            answers.append(f"  probes: both right {known[2]}, one {known[1]}, neither {known[0]}")
        reasons = Counter((each.condition, each.reason) for each in self.skipped)
        return [
            f"{self.path}: {len(self.records)} records ({self.asked} asked now, {self.kept} there before)",
            *answers,
            *([f"  {self.dropped} half-written line was cut off and its question asked again"] if self.dropped else []),
            *(
                f"  not asked in {condition}: {count} ({reason})"
                for (condition, reason), count in sorted(reasons.items())
            ),
        ]


def run_trapqa(
    handle: ModelHandle,
    items: str | Path | ItemSet | None,
    options: RunOptions,
    out: str | Path,
    *,
    fields: Mapping[str, str] | None = None,
    resume: bool = False,
    command: Sequence[str] | None = None,
) -> Summary:
    """Ask a model, question by question, and write a record of each.

    Every question is written when it is answered. A run that was stopped goes on where it stopped, with `resume`; so
    can further conditions be added to a file. When all is asked, the answers to the probe questions are copied into the
    other records of their question.

    Args:
        handle: The model.
        items: See `latentkt.trapqa.running.load_source`; None: the built-in set.
        options: How to ask.
        out: The records, a file ending in `.jsonl`; `NAME.meta.json` is written beside it.
        fields: Field map of rows that are no trap items.
        resume: Go on with a file that exists.
        command: The words of the command line, for the provenance.

    Returns:
        What was asked, kept and skipped.

    Raises:
        InputError: An option does not fit the model, or the items are not there.
        DataError: An item is wrong.
        RunError: The file exists, or was begun with another model, item set or option.
    """
    path = Path(out)
    if path.suffix != ".jsonl":
        raise InputError("records are JSON lines", expected="a name ending in .jsonl", found=path.name)
    template = _template(handle, options)
    source = load_source(items, options.conditions, fields=fields)
    plan = plan_questions(source.given, orders=options.orders, seed=options.seed, limit=options.limit)
    setting = options.setting or handle.name
    skipped = list(plan.skipped)
    identity = _identity(handle, options, source, template)
    with open_journal(path, identity, layout=RECORDS, resume=resume, command=command) as journal:
        asked = 0
        with progress() as bar:
            stage = bar.stage("asking", total=len(plan.questions))
            # Batches are cut from the plan, not from what is left: a run that goes on has the same batches.
            for first in range(0, len(plan.questions), options.batch_size):
                batch = plan.questions[first : first + options.batch_size]
                todo = [question for question in batch if question.key(setting) not in journal.done]
                records, refused = ask(handle, todo, options, setting=setting, template=template)
                journal.append(records)
                asked += len(records)
                skipped += refused
                stage.advance(len(batch))
        finished = _in_plan_order(journal.records, [question.key(setting) for question in plan.questions])
        session = {
            "conditions": list(options.conditions),
            "orders": options.orders,
            "limit": options.limit,
            "asked": asked,
            "half_written_lines": journal.dropped,
            "skipped": grouped(skipped),
        }
        journal.finish(finished, session)
    return Summary(path, tuple(finished), asked, len(finished) - asked, journal.dropped, tuple(skipped))


def _in_plan_order(records: Sequence[Record], keys: Sequence[Any]) -> list[Record]:
    """Records of earlier plans first, then those of this plan in its order: a resumed run ends as an unbroken one."""
    place = {key: n for n, key in enumerate(keys)}
    return join_probes(sorted(records, key=lambda record: place.get(record.key, -1)))


def _template(handle: ModelHandle, options: RunOptions) -> Template:
    if options.template == "chat" and not handle.has_chat_template:
        raise InputError(f"model {handle.name!r} has no chat template", fix="ask with --template plain")
    if options.template is not None:
        return options.template
    if options.confidence and not handle.has_chat_template:
        raise InputError(f"model {handle.name!r} has no chat template, so no second turn", fix="leave confidence out")
    return "chat" if handle.has_chat_template else "plain"


def _identity(handle: ModelHandle, options: RunOptions, source: Source, template: Template) -> dict[str, Any]:
    """What the answers depend on. Conditions, orders and limits only choose which questions are asked."""
    return {
        "model": handle.metadata(),
        "setting": options.setting or handle.name,
        "items": {"name": source.name, "sha256": source.sha256},
        "mode": options.mode,
        "template": template,
        "system": options.system,
        "prompt_template": options.prompt_template,
        "decoding": options.decoding(),
        "confidence": options.confidence,
        "seed": options.seed,
        "versions": library_versions(),
    }
