"""Put the sections of a run on one page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import RunError
from latentkt.report.blocks import Finding, Section
from latentkt.report.closing import provenance, skipped
from latentkt.report.opening import Opening, opening_of
from latentkt.report.sections import ELSEWHERE, modules
from latentkt.report.typeset import typeset
from latentkt.results import atomic_write

if TYPE_CHECKING:
    from latentkt.results import Run

__all__ = ["build", "render"]


def build(run: Run, out: str | os.PathLike[str] | None = None) -> Path:
    """Write the report of a run.

    Args:
        run: A loaded run.
        out: Where to write; default `report.html` in the run's folder.

    Returns:
        Path of the page. It holds its styles and figures, and asks for nothing from anywhere.

    Raises:
        RunError: The run has no table that the report knows.
        DataError: A table lacks a column that its section needs.
    """
    path = Path(out) if out is not None else run.path / "report.html"
    text = render(run)
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def render(run: Run) -> str:
    """The report of a run as HTML text; the same run gives the same text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    sections, absent = _sections(run)
    if not sections:
        raise RunError(
            f"run {run.path} has nothing to report",
            expected="at least one of the tables that a section is made of",
            found=", ".join(run.tables) or "no tables",
        )
    page = Environment(
        loader=PackageLoader("latentkt.report", "template"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    page.filters["words"] = typeset
    style = resources.files("latentkt.report").joinpath("template", "style.css").read_text(encoding="utf-8")
    everything = [*sections, skipped(run, absent), provenance(run)]
    return page.get_template("page.html.j2").render(
        header=_header(run),
        sections=everything,
        found=_collected(sections, True),
        not_found=_collected(sections, False),
        style=style,
    )


def _sections(run: Run) -> tuple[list[Section], list[str]]:
    """Sections that the run holds, and titles of those it does not."""
    made, absent = [], []
    for module in modules():
        section = module.section(run)
        if section is not None:
            made.append(section)
        elif module.__name__.rpartition(".")[2] not in ELSEWHERE:
            absent.append(module.TITLE)
    return made, absent


def _collected(sections: list[Section], found: bool) -> list[tuple[Section, Finding]]:
    return [(section, finding) for section in sections for finding in section.findings if finding.found is found]


@dataclass(frozen=True, slots=True)
class _Header:
    """What the page says at its top."""

    model: str
    facts: list[tuple[str, str]]
    command: str
    opening: Opening


def _header(run: Run) -> _Header:
    model = run.identity.get("model", {})
    name = str(model.get("model") or model.get("id") or "a model") if isinstance(model, dict) else str(model)
    history = run.metadata["history"]
    command = next((entry["command"] for entry in history if entry["command"]), ["(from Python)"])
    facts = [
        *_model_facts(model if isinstance(model, dict) else {}),
        ("items", _items(run)),
        ("preset", run.identity.get("preset")),
        ("seeds", _pairs(run.identity.get("seeds"))),
        ("begun", str(history[0]["began"]).replace("T", " ").replace("+00:00", " UTC")),
        ("latentkt", run.identity.get("versions", {}).get("latentkt")),
    ]
    return _Header(
        name, [(label, str(value)) for label, value in facts if value], " ".join(command), opening_of(command)
    )


def _model_facts(model: dict[str, Any]) -> list[tuple[str, Any]]:
    weights = str(model.get("weight_hash") or "")
    reading = ", ".join(str(model[key]) for key in ("dtype", "attn_implementation", "device") if model.get(key))
    return [
        ("architecture", model.get("architecture")),
        ("layers", model.get("n_layers")),
        ("weights", weights[:12] + "…" if len(weights) > 12 else weights),
        ("read as", reading),
    ]


def _items(run: Run) -> str:
    """The item set in a few words: what the metadata say of it, else what the answers hold."""
    items = run.identity.get("items")
    words = []
    if isinstance(items, dict):
        words = [str(items[key]) for key in ("name", "path") if items.get(key)][:1]
        digest = items.get("sha256") or items.get("hash")
        words += [f"sha256 {str(digest)[:12]}…"] if digest else []
    elif items:
        words = [str(items)[:20]]
    if "answers" in run.tables:
        words.append(f"{run.tables['answers']['item'].nunique()} asked")
    return ", ".join(words)


def _pairs(seeds: Any) -> str:
    if isinstance(seeds, dict):
        return ", ".join(f"{name} {value}" for name, value in seeds.items())
    return "" if seeds is None else str(seeds)
