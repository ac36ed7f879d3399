"""The command line: finds the subcommand, imports it, runs it, and turns refusals into exit code 2."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from latentkt.errors import LatentKTError

# Name of the subcommand -> one line of help. The module is imported only when the command is used.
COMMANDS: dict[str, str] = {
    "study": "the main job: ask a model trap items, measure inside it, write tables and a report",
    "lens": "what the model would answer after each layer, on items and controls",
    "attribute": "what each part of the network adds to the answer, and the head table",
    "patch": "exact patching between items and their controls, held against placebo donors",
    "atp": "attribution patching: every patch predicted from gradients, some of them run as a check",
    "knockout": "cut attention from role to role, layer by layer",
    "faithfulness": "how much of the answer a small part of the network keeps",
    "probe": "what can be read from the residual stream, beside baselines and a control task",
    "steer": "change runs along a probe's direction, beside controls of the same length",
    "verdict": "for each item: what is answered, and whether its constraint is read",
    "models": "fetch the model of the built-in study; check how a model is read",
    "trapqa": "ask any model trap items, hosted ones too, and keep what it answers as records",
    "items": "validate trap items and print how a set is balanced",
    "report": "write the HTML page of a run again from its tables",
    "runs": "look at run directories",
    "theory": "the exact latent key–task model: quantities, bounds and certificates of a case",
    "corpus": "count keys and tasks in a corpus, and turn counts into priors",
    "phantom": "concepts that do not exist: make, verify, ask, judge, analyse, probe",
    "synthetic": "train small transformers on worlds with a known prior, and measure them",
}


def _parser(name: str) -> argparse.ArgumentParser:
    module = importlib.import_module(f"latentkt.commands.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(prog=f"latentkt {name}", description=COMMANDS[name])
    module.configure(parser)
    parser.set_defaults(_run=module.run)
    return parser


def _overview() -> str:
    width = max(map(len, COMMANDS), default=0)
    rows = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: latentkt COMMAND …  (latentkt COMMAND --help for its options)", "", *rows])


def main(argv: Sequence[str] | None = None) -> int:
    """Run `latentkt` with `argv` (default: the process's arguments) and return the exit code.

    Exit codes: 0 done, 2 refused (the message says what was expected, what was found, what to do), 130 interrupted,
    141 where the reader of the output has gone.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in {"-h", "--help"}:
        print(_overview())
        return 0
    if args[0] == "--version":
        from latentkt import __version__

        print(__version__)
        return 0
    if args[0] not in COMMANDS:
        print(f"latentkt: no command {args[0]!r}\n\n{_overview()}", file=sys.stderr)
        return 2
    options = _parser(args[0]).parse_args(args[1:])
    options.command_line = ["latentkt", *args]  # as it was meant, whatever file started the interpreter
    try:
        return int(options._run(options))
    except LatentKTError as error:
        print(f"latentkt {args[0]}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(": ".join(["interrupted", *map(str, stop.args)]), file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; Python would complain once more when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        refusal = LatentKTError(
            f"{_short(place)}{error.strerror or error}",
            found=type(error).__name__,
            fix="check the path, the rights on it and the space left",
        )
        print(f"latentkt {args[0]}: {refusal}", file=sys.stderr)
        return 2


def _short(place: str) -> str:
    return place if len(place) <= 200 else f"{place[:99]}…{place[-99:]}"


if __name__ == "__main__":
    sys.exit(main())
