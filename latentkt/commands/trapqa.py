"""`latentkt trapqa`: make trap items, ask a model, read logs of hosted models, write the page of what was answered."""

from __future__ import annotations

import argparse
from pathlib import Path

from latentkt.commands import trapqa_analyse, trapqa_build

_CONDITIONS = ("names", "profiles", "neutral", "probes", "real_life")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the stages of construction, `run`, `from-log`, `report` and `analyse`."""
    actions = parser.add_subparsers(dest="action", required=True)
    trapqa_build.configure(actions)
    _configure_run(actions.add_parser("run", help="ask a model on this machine and write records"))
    log = actions.add_parser("from-log", help="make records of logs of inspect-ai")
    log.add_argument("logs", nargs="+", metavar="LOG", help="logs of `inspect eval latentkt/trapqa_…`")
    log.add_argument("--out", required=True, metavar="RECORDS", help="the records, a new .jsonl file")
    log.add_argument("--setting", help="what to call the model and its settings; default: its id and reasoning options")
    log.add_argument("--partial", action="store_true", help="take what is there of logs that were not finished")
    report = actions.add_parser("report", help="write a run folder and its HTML page from records")
    report.add_argument("records", nargs="+", metavar="RECORDS")
    report.add_argument("--out", required=True, metavar="DIR", help="the run folder, new")
    trapqa_analyse.configure(actions.add_parser("analyse", help="every table of the paper, with intervals and tests"))


def _configure_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="smollm2, a local folder, or a hub id")
    parser.add_argument(
        "--condition",
        nargs="+",
        choices=_CONDITIONS,
        required=True,
        help="one or more; items that do not fit are counted",
    )
    parser.add_argument("--out", required=True, metavar="RECORDS", help="the records, a .jsonl file")
    parser.add_argument("--items", metavar="F", help="trap items, rows, a folder or hub id laid out as TrapQA; "
                        "default: the built-in set")  # fmt: skip
    parser.add_argument(
        "--field", action="append", default=[], metavar="NAME=FIELD", help="name of a field of the rows"
    )
    parser.add_argument("--mode", choices=("logprob", "generate"), default="logprob")
    parser.add_argument("--orders", choices=("seeded", "both"), default="seeded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, metavar="N", help="at most N items a condition, of those that fit it")
    parser.add_argument("--setting", help="what to call the model in the records; default: its name")
    parser.add_argument(
        "--template", choices=("chat", "plain"), help="default: chat where the tokenizer has a template"
    )
    parser.add_argument("--system", metavar="TEXT", help='system prompt; "none" removes the template\'s own')
    parser.add_argument(
        "--prompt-template", metavar="FILE", help="a text with placeholders in place of the built-in one"
    )
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.0, help="0: the likeliest token each time")
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--confidence", action="store_true", help="ask how sure the model is, in a second turn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--resume", action="store_true", help="go on with RECORDS: nothing is asked twice")


def run(args: argparse.Namespace) -> int:
    """Do it and print what was done."""
    if args.action == "analyse":
        return trapqa_analyse.run(args)
    if args.action in trapqa_build.RUN:
        return trapqa_build.RUN[args.action](args)
    print("\n".join({"run": _run, "from-log": _from_log, "report": _report}[args.action](args)))
    return 0


def _run(args: argparse.Namespace) -> list[str]:
    from latentkt.models import open_model
    from latentkt.trapqa import read_prompt_template
    from latentkt.trapqa.running import RunOptions, run_trapqa
    from latentkt.trapqa.running.inspect_samples import read_fields

    names = (
        "mode",
        "orders",
        "seed",
        "limit",
        "setting",
        "template",
        "system",
        "max_new_tokens",
        "temperature",
        "top_p",
    )
    options = RunOptions(
        conditions=tuple(args.condition),
        confidence=args.confidence,
        prompt_template=read_prompt_template(args.prompt_template) if args.prompt_template else None,
        **{name: getattr(args, name) for name in names},
    )
    handle = open_model(args.model, device=args.device, dtype=args.dtype)
    fields = read_fields(",".join(args.field))
    done = run_trapqa(
        handle, args.items, options, args.out, fields=fields, resume=args.resume, command=args.command_line
    )
    return done.lines()


def _from_log(args: argparse.Namespace) -> list[str]:
    from latentkt.trapqa.running import records_from_log
    from latentkt.trapqa.running.inspect_log import save_log_records

    found = records_from_log(*args.logs, setting=args.setting, partial=args.partial)
    save_log_records(found, Path(args.out), command=args.command_line)
    return [str(args.out), *found.lines()]


def _report(args: argparse.Namespace) -> list[str]:
    from latentkt.report import build
    from latentkt.results import load_run
    from latentkt.trapqa.running.tables import save_run

    folder = save_run([Path(path) for path in args.records], Path(args.out), command=args.command_line)
    return [f"report: {build(load_run(folder))}"]
