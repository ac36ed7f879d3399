"""Arguments that the commands `lens`, `attribute` and `patch` share."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_arguments", "options_of"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the items, where tables go, and how the model is run."""
    parser.add_argument("model", help="smollm2, a local folder, or a hub id")
    parser.add_argument("--items", metavar="FILE", help="trap items (JSONL); default: the built-in set")
    parser.add_argument("--out", metavar="DIR", required=True, help="run directory to write")
    parser.add_argument(
        "--engine", default="fast", choices=("fast", "reference", "transformer_lens", "nnsight"), help="default: fast"
    )
    parser.add_argument("--orders", nargs="+", default=["correct_first", "shortcut_first"], metavar="ORDER")
    parser.add_argument(
        "--template", choices=("chat", "plain"), help="default: chat where the tokenizer has a template"
    )
    parser.add_argument("--system", metavar="TEXT", help='system prompt; "none" removes the template\'s own')
    parser.add_argument("--limit", type=int, metavar="N", help="the first N items only")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--memory-mb", type=float, metavar="MB", help="working memory of a sweep; default: 600")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """The shared arguments as keyword arguments of the library's functions."""
    names = ("items", "orders", "template", "system", "limit", "engine", "device", "dtype", "memory_mb", "resume")
    return {**{name: getattr(args, name) for name in names}, "command": args.command_line}
