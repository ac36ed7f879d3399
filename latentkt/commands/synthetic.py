"""`latentkt synthetic`: train small transformers on worlds with a known prior, and measure them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from latentkt.errors import InputError

__all__ = ["configure", "run"]

PRESETS = (
    "small", "uninformative", "long", "soft", "smoke", "large", "action-never", "action-prior", "action-constraint",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`, `sweep`, `corpus`, `inside` and `r-test`."""
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("run", help="one network a seed: tables, summary.json, figures, report")
    _common(one)
    one.add_argument("--preset", choices=PRESETS, default="small")
    sweep = actions.add_parser("sweep", help="the same over values of one setting")
    _common(sweep)
    sweep.add_argument("--preset", choices=PRESETS, default="small")
    sweep.add_argument("--over", required=True, help="rho, noise, depth, epochs, or a dotted name")
    sweep.add_argument("--values", nargs="+", required=True)
    text = actions.add_parser("corpus", help="write one epoch as JSON lines, with the patterns that count it")
    text.add_argument("--preset", choices=PRESETS, default="small")
    text.add_argument("--seed", type=int, default=0)
    text.add_argument("--epoch", type=int, default=0)
    text.add_argument("--out", type=Path, required=True)
    text.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    inside = actions.add_parser("inside", help="lens, patches, attribution and probes in the networks of a run")
    inside.add_argument("networks", type=Path, metavar="RUN", help="run directory of a fact preset")
    inside.add_argument("--out", type=Path, required=True)
    inside.add_argument("--number", type=int, default=30, help="traps of each cluster and network")
    inside.add_argument("--resume", action="store_true")
    pair = actions.add_parser("r-test", help="two corpora that differ in the coefficient of log R")
    _common(pair)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True, help="run directory")
    parser.add_argument("--resume", action="store_true", help="go on with an existing run")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="change a setting: rho=0.1 depth=4")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"run": _run, "sweep": _sweep, "corpus": _corpus, "r-test": _r_test, "inside": _inside}[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from latentkt.plots.synthetic import save_figures
    from latentkt.synthetic import check_run, preset, run_preset

    done = run_preset(
        preset(args.preset, _settings(args.set)),
        seeds=args.seeds,
        out=args.out,
        resume=args.resume,
        command=_words(args),
    )
    save_figures(done)
    for check in check_run(done):
        print(check)
    print(_report(done))
    return 0


def _sweep(args: argparse.Namespace) -> int:
    from latentkt.plots.synthetic import save_figures
    from latentkt.synthetic import run_sweep

    done = run_sweep(
        args.preset, over=args.over, values=[_value(text) for text in args.values], settings=_settings(args.set),
        seeds=args.seeds, out=args.out, resume=args.resume, command=_words(args),
    )  # fmt: skip
    save_figures(done)
    print(_report(done))
    return 0


def _corpus(args: argparse.Namespace) -> int:
    from latentkt.synthetic import FactStream, open_stream, preset, write_corpus

    stream = open_stream(preset(args.preset, _settings(args.set)), args.seed)
    if not isinstance(stream, FactStream):
        raise InputError("an action world has no corpus of facts", expected="another preset", found=args.preset)
    found = write_corpus(stream.world, args.out, epoch=args.epoch)
    print(
        f"{found.documents} documents in {args.out / 'corpus.jsonl'}, patterns in {args.out / 'corpus.patterns.json'}"
    )
    return 0


def _r_test(args: argparse.Namespace) -> int:
    from latentkt.plots.synthetic import save_figures
    from latentkt.synthetic import run_r_test, verdict

    done = run_r_test(
        seeds=args.seeds, out=args.out, resume=args.resume, settings=_settings(args.set), command=_words(args)
    )
    save_figures(done)
    for line in verdict(done.tables["r_fits"]):
        print(line)
    print(_report(done))
    return 0


def _inside(args: argparse.Namespace) -> int:
    from latentkt.results import load_run
    from latentkt.synthetic import run_inside

    done = run_inside(
        load_run(args.networks), out=args.out, number=args.number, resume=args.resume, command=_words(args)
    )
    print(_report(done))
    return 0


def _report(done: Any) -> str:
    from latentkt.report import build

    return f"report: {build(done)}"


def _settings(pairs: list[str]) -> dict[str, Any]:
    settings = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise InputError(f"--set {pair}", expected="NAME=VALUE", found=pair)
        settings[name] = _value(text)
    return settings


def _value(text: str) -> Any:
    """A JSON value, or the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _words(args: argparse.Namespace) -> list[str]:
    words = ["latentkt", "synthetic", args.action]
    for name, value in vars(args).items():
        if name in {"action", "_run"} or value in (False, [], None):
            continue
        words.append(f"--{name}")
        if value is not True:
            words += [str(item) for item in (value if isinstance(value, list) else [value])]
    return words
