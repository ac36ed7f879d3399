"""`latentkt phantom ask MODEL CONCEPTS --out F`, or answers from the logs of hosted models."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="MODEL", help="smollm2, a local folder, or a hub id; with --from-log a log")
    parser.add_argument("concepts", nargs="*", metavar="CONCEPTS", help="concepts (JSONL); with --from-log more logs")
    parser.add_argument("--out", required=True, metavar="ANSWERS", help="the answers, a .jsonl file")
    parser.add_argument("--from-log", action="store_true", help="read logs of `inspect eval latentkt/phantom` instead")
    parser.add_argument("--partial", action="store_true", help="with --from-log: take what is there of unfinished logs")
    parser.add_argument("--prompts", metavar="F", help="questions (JSONL) in place of drawn ones")
    parser.add_argument(
        "--property", nargs="+", default=None, metavar="P", help="what is asked; default: existence meaning date place"
    )
    parser.add_argument("--per-property", type=int, default=1, metavar="N", help="phrasings of each property")
    parser.add_argument("--pools", metavar="F", help="phrasings of your own (JSON)")
    parser.add_argument("--seed", type=int, default=0, help="of the phrasings and of sampling")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N questions only")
    parser.add_argument("--setting", help="what to call the model and its settings; default: its name")
    parser.add_argument("--template", choices=("chat", "plain"), help="default: chat where the tokenizer has one")
    parser.add_argument("--system", metavar="TEXT", help='system prompt; "none" removes the template\'s own')
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--thinking-budget", type=int, metavar="N", help="tokens for reasoning, on top of the answer's")
    parser.add_argument("--temperature", type=float, default=0.0, help="0: the likeliest token each time")
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--resume", action="store_true", help="go on with ANSWERS: nothing is asked twice")


def run(args: argparse.Namespace) -> int:
    """Ask, and print what came back."""
    print("\n".join(_from_log(args) if args.from_log else _ask(args)))
    return 0


def _ask(args: argparse.Namespace) -> list[str]:
    from latentkt.errors import InputError
    from latentkt.models import open_model
    from latentkt.phantom import load_concepts
    from latentkt.phantom.asking import AskOptions, ask, questions_of
    from latentkt.phantom.builtin import builtin_concepts
    from latentkt.phantom.prompts import load_pools, load_prompts

    if len(args.concepts) > 1:
        raise InputError("concepts", expected="one file", found=", ".join(args.concepts))
    concepts = load_concepts(args.concepts[0]) if args.concepts else builtin_concepts()
    drawn = {"per_property": args.per_property, "seed": args.seed}
    drawn |= {"properties": args.property} if args.property else {}
    drawn |= {"pools": load_pools(args.pools)} if args.pools else {}
    prompts = load_prompts(args.prompts) if args.prompts else None
    questions = questions_of(concepts, prompts, limit=args.limit, **drawn)
    options = AskOptions(
        **{
            name: getattr(args, name)
            for name in ("setting", "template", "system", "max_new_tokens", "thinking_budget", "temperature", "top_p")
        },
        seed=args.seed,
        batch_size=args.batch_size,
    )
    handle = open_model(args.model, device=args.device, dtype=args.dtype)
    return ask(handle, questions, options, args.out, resume=args.resume, command=args.command_line).lines()


def _from_log(args: argparse.Namespace) -> list[str]:
    from latentkt.phantom.asking.inspect_log import answers_from_log, save_log_answers

    found = answers_from_log(args.model, *args.concepts, setting=args.setting, partial=args.partial)
    save_log_answers(found, Path(args.out), command=args.command_line)
    return [str(args.out), *found.lines()]
