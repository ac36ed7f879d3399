"""A run of counting: the plan that fixes it, the files of its shards, and the end of it."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from latentkt.corpus.counter import Job, Partial, manifest, merge_partials
from latentkt.corpus.counts import MANIFEST, Counts, load_counts
from latentkt.corpus.fields import choose_fields
from latentkt.corpus.layout import parse_scopes
from latentkt.corpus.matching import Matching
from latentkt.corpus.patterns import Patterns
from latentkt.corpus.readers import first_record
from latentkt.corpus.shards import Shard, find_shards
from latentkt.errors import RunError

__all__ = ["PLAN", "Plan", "make_plan"]

PLAN = "plan.json"
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Plan:
    """What a run counts, and where.

    Attributes:
        job: Patterns, matching, scopes, fields.
        shards: The files, in the order of their number.
        out: The folder of the run.
        passed_over: Files in the named folders that have no known suffix.
    """

    job: Job
    shards: tuple[Shard, ...]
    out: Path
    passed_over: tuple[str, ...] = ()

    def part(self, index: int) -> Path:
        """File of one shard's counts."""
        return self.out / "parts" / f"{index:06d}.npz"

    def missing(self) -> list[int]:
        """Numbers of the shards that are not counted yet."""
        return [index for index in range(len(self.shards)) if not self.part(index).exists()]

    def save_part(self, index: int, partial: Partial) -> None:
        """Keep the counts of one shard.

        Raises:
            RunError: They cannot be written; finished shards are kept.
        """
        guarded(self.out, lambda: partial.save(self.part(index)))

    def to_dict(self) -> dict[str, Any]:
        """Everything that decides the result, as plain data."""
        return {
            **self.job.to_dict(),
            "shards": [shard.to_dict() for shard in self.shards],
            "passed_over": list(self.passed_over),
        }

    def begin(self) -> None:
        """Make the folder, or go on with it if it belongs to the same plan.

        A file that is not counted yet may have another size than when the run began: an unreadable one was mended.

        Raises:
            RunError: The folder holds something else, or cannot be written.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False)
        path = self.out / PLAN
        if self.out.exists() and any(self.out.iterdir()):
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
            if known is None or self._fixed(known) != self._fixed(json.loads(text)):
                raise RunError(
                    f"{self.out} is taken",
                    expected="an empty or new folder, or a run of the same patterns, options and files",
                    found="a run of other ones" if known else "other files",
                    fix="choose another --out",
                )
        guarded(self.out, lambda: self._write(path, text))

    def _fixed(self, plan: dict[str, Any]) -> dict[str, Any]:
        """What of a plan must not change any more: all but the sizes of files that are not counted."""
        left = set() if self.finished else set(self.missing())
        shards = [{**shard, "size": None if i in left else shard["size"]} for i, shard in enumerate(plan["shards"])]
        return {**plan, "shards": shards}

    def _write(self, path: Path, text: str) -> None:
        (self.out / "parts").mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)

    @property
    def finished(self) -> bool:
        """Whether the counts are written."""
        return (self.out / MANIFEST).exists()

    def finish(self, parts: Iterable[Path] | None = None) -> Counts:
        """Merge the parts (all shards, or the given files) and write the counts.

        Raises:
            RunError: A shard is missing, or the counts cannot be written.
        """
        if parts is None:
            if missing := self.missing():
                raise RunError("not every shard is counted", expected=len(self.shards), found=f"missing {missing[:10]}")
            parts = [self.part(index) for index in range(len(self.shards))]
        partial = merge_partials(Partial.load(path) for path in parts)
        described = manifest(self.job, partial)
        names = [shard.name for shard in self.shards]
        described |= {"shards": names, "passed_over": list(self.passed_over)}
        Counts(self.job.patterns, self.job.layout, partial.tally, described).save(self.out)
        return load_counts(self.out)


def guarded(out: Path, write: Callable[[], _Result]) -> _Result:
    """Write something; what the disk refuses becomes a clear error."""
    try:
        return write()
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise RunError(
            f"no space left for {out}" if full else f"cannot write to {out}",
            expected="room and permission",
            found=error,
            fix="make room and run the same command again: finished shards are kept",
        ) from error


def make_plan(
    paths: Sequence[str],
    patterns: Patterns,
    out: str | Path,
    *,
    windows: Sequence[int] = (),
    sentence: bool = False,
    matching: Matching | None = None,
    text_field: str | None = None,
    cluster: str | None = None,
    kernel: str = "auto",
    strict: bool = False,
) -> Plan:
    """Look at the corpus and fix what is counted.

    Args:
        paths: Files, folders, globs, URLs, ``hub:NAME[@CONFIG][#SPLIT]``.
        patterns: The pattern set.
        out: Folder for the counts.
        windows: Window sizes in word tokens.
        sentence: Count within sentences too.
        matching: How text is compared.
        text_field: Field of the text; found if None.
        cluster: Rule of the clusters (see `Fields`); found if None.
        kernel: ``auto``, ``numba`` or ``numpy``.
        strict: Stop at the first damaged line.

    Raises:
        InputError: No files, an unknown field, a bad option.
        DataError: The first shard cannot be read.
    """
    shards, passed_over = find_shards(paths)
    records = (first_record(shard) for shard in shards if shard.format != "text")
    record = next((record for record in records if record is not None), None)
    fields = choose_fields(record, text=text_field, cluster=cluster)
    scopes = parse_scopes(windows=windows, sentence=sentence)
    job = Job(patterns, matching or Matching(), scopes, fields, kernel, strict)
    return Plan(job, shards, Path(out), passed_over)
