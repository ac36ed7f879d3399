"""`latentkt phantom make | verify | …`: concepts that do not exist, from seeds to what models say about them.

Each action has a light module of its own, `phantom_ACTION.py`, with `configure` and `run`.
"""

from __future__ import annotations

import argparse
import importlib

__all__ = ["ACTIONS", "configure", "run"]

# Name of the action -> one line of help, in the order of a user's work.
ACTIONS: dict[str, str] = {
    "make": "make concepts that do not exist from seeds that do",
    "verify": "search a corpus for concepts: what it holds is dropped, or sorted by frequency where it is real",
    "sample": "draw a stratified subset, and real concepts to hold against it",
    "ask": "ask a model about concepts, or read the logs of hosted ones",
    "judge": "decide which answers abstain: by a judge model, or by a phrase list",
    "analyse": "every table of judged answers, and the report",
    "probe": "read from a model's activations whether a concept exists, and push it",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(ACTIONS))
    for name, text in ACTIONS.items():
        module = importlib.import_module(f"latentkt.commands.phantom_{name}")
        module.configure(actions.add_parser(name, help=text, description=text))


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return int(importlib.import_module(f"latentkt.commands.phantom_{args.action}").run(args))
