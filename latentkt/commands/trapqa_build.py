"""`latentkt trapqa pairs|questions|associations|scenarios`: make trap items, stage by stage."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import DataError

if TYPE_CHECKING:
    from latentkt.trapqa.build.lists import ClosedList

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["RUN", "configure"]


def configure(actions: Actions) -> None:
    """Add the stages of construction."""
    _configure_pairs(actions.add_parser("pairs", help="construction: people who are easily confused, from profiles"))
    _configure_questions(actions.add_parser("questions", help="construction: trap items about pairs of people"))
    _configure_associations(
        actions.add_parser("associations", help="construction: word associations as seeds of everyday scenes")
    )
    _configure_scenarios(actions.add_parser("scenarios", help="construction: everyday trap items from those seeds"))


def _configure_pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profiles", metavar="PROFILES", help="SPARQL results (.json), .jsonl, .csv or .tsv")
    _output(parser, "PAIRS")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--top", type=int, metavar="N", help="the N best pairs")
    much.add_argument("--fraction", type=float, metavar="F", help="this share of all pairs; default 0.0001")
    parser.add_argument("--field", action="append", default=[], metavar="PART=FIELD", help="name of a field: id, name, "
                        "aliases, born, died, text, fame, or attributes=FIELD,FIELD")  # fmt: skip
    parser.add_argument(
        "--embedding",
        default="minilm",
        help="minilm (default), tfidf, http://HOST/v1#MODEL, or a sentence-transformers model",
    )
    parser.add_argument("--licence", default="not stated", help="licence of the profiles, for the data card")


def _configure_questions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pairs", metavar="PAIRS", help="what `latentkt trapqa pairs` wrote")
    _output(parser, "ITEMS")
    parser.add_argument("--list", metavar="FILE", help="a complete list of awards (CSV or JSON lines)")
    parser.add_argument("--list-award", default="{award}", metavar="TEXT", help="how its awards are named, with fields "
                        'in braces: "Nobel Prize in {category}"')  # fmt: skip
    parser.add_argument("--list-name", metavar="TEXT", help="what the list is called; default: its file's name")
    parser.add_argument("--list-licence", default="not stated", metavar="TEXT")
    parser.add_argument("--noun", default="person", help="what the people are: physicist, composer; default: person")
    parser.add_argument("--aspect", help="field of knowledge, for the items")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N items")
    parser.add_argument("--per-person", type=int, default=8, metavar="N", help="items one person may be in; default 8")
    parser.add_argument("--unverified", nargs="+", default=[], metavar="ATTRIBUTE", help="also use constraints that "
                        "rest on what a profile leaves out; their items are marked")  # fmt: skip
    parser.add_argument("--wordings", metavar="FILE", help="JSON: how further attributes are said")
    parser.add_argument("--model", help="a model of inspect-ai writes the questions; default: templates")
    parser.add_argument("--checker", help="a model of inspect-ai gives a second opinion on each item")
    parser.add_argument("--retries", type=int, default=2, help="how often a model is asked again; default 2")


def _configure_associations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "strengths", metavar="STRENGTHS", help="a file of association strengths, as SWOW publishes them"
    )
    _output(parser, "SEEDS")
    parser.add_argument("--words", choices=("auto", "builtin"), default="auto", help="auto (default): spaCy, WordNet, "
                        "wordfreq where installed; builtin: the same everywhere")  # fmt: skip
    parser.add_argument("--min-strength", type=float, default=0.08, metavar="S", help="weakest shortcut; default 0.08")
    parser.add_argument("--high-zipf", type=float, default=6.5, metavar="Z", help="no words more frequent; default 6.5")
    parser.add_argument("--low-zipf", type=float, default=1.0, metavar="Z", help="no words rarer; default 1.0")
    parser.add_argument("--licence", default="not stated", help="licence of the file, for the data card")


def _configure_scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("seeds", metavar="SEEDS", help="what `latentkt trapqa associations` wrote")
    _output(parser, "ITEMS")
    parser.add_argument("--perturb", nargs="+", default=[], choices=("names", "distances", "order", "levels"),
                        help="also write perturbed versions")  # fmt: skip
    parser.add_argument("--limit", type=int, metavar="N", help="at most N items before perturbation")
    parser.add_argument("--per-response", type=int, default=12, metavar="N", help="scenes of a family that may "
                        "offer the same response; default 12")  # fmt: skip
    parser.add_argument("--model", help="a model of inspect-ai writes further scenes")
    parser.add_argument("--per-family", type=int, default=10, metavar="N", help="scenes it is asked for; default 10")
    parser.add_argument("--checker", help="a model of inspect-ai gives a second opinion on each item")
    parser.add_argument("--retries", type=int, default=2, help="how often a model is asked again; default 2")


def _output(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--out", required=True, metavar=name, help="a .jsonl file; what belongs to it lies beside it")
    parser.add_argument("--seed", type=_seed, default=0, metavar="S", help="a whole number from 0 to 4294967295")


def _seed(text: str) -> int:
    """A seed that every generator of random numbers takes."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0 to 4294967295, not {text!r}")
    return int(text)


def _pairs(args: argparse.Namespace) -> int:
    from latentkt.trapqa.build import make_pairs
    from latentkt.trapqa.running.inspect_samples import read_fields

    fields = {
        name: value for field in args.field for name, value in (read_fields(field.replace(",", "\0")) or {}).items()
    }
    lines = make_pairs(
        args.profiles,
        out=args.out,
        top=args.top,
        fraction=1e-4 if args.top is args.fraction is None else args.fraction,
        embed=args.embedding,
        fields={name: value.replace("\0", ",") for name, value in fields.items()},
        licence=args.licence,
        seed=args.seed,
    )
    print("\n".join(lines))
    return 0


def _questions(args: argparse.Namespace) -> int:
    from latentkt.results import jsonl_output
    from latentkt.trapqa.build import QuestionOptions, make_questions, read_wordings
    from latentkt.trapqa.build.output import BESIDE

    names = ("noun", "aspect", "limit", "per_person", "unverified", "model", "checker", "retries", "seed")
    options = QuestionOptions(
        lists=_lists(args),
        wordings=read_wordings(_json(args.wordings)),
        **{name: getattr(args, name) for name in names},
    )
    jsonl_output(args.out, [file for file in (args.list, args.wordings) if file], beside=BESIDE)
    made = make_questions(args.pairs, options, out=args.out)
    print("\n".join(made.lines))
    return 0 if made.tests.passed else 2


def _json(path: str | None) -> Mapping[str, object]:
    """An object of a JSON file; an empty one where no file was named."""
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not JSON", expected="one JSON object", found=error) from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: not an object", expected="one JSON object", found=repr(found)[:60])
    return found


def _lists(args: argparse.Namespace) -> list[ClosedList]:
    from latentkt.trapqa.build import read_list

    if args.list is None:
        return []
    return [read_list(args.list, award=args.list_award, name=args.list_name, licence=args.list_licence)]


def _associations(args: argparse.Namespace) -> int:
    from latentkt.trapqa.build import Cleaning, SeedLimits, make_associations

    lines = make_associations(
        args.strengths,
        out=args.out,
        use=args.words,
        cleaning=Cleaning(args.high_zipf, args.low_zipf),
        limits=SeedLimits(args.min_strength),
        licence=args.licence,
        seed=args.seed,
    )
    print("\n".join(lines))
    return 0


def _scenarios(args: argparse.Namespace) -> int:
    from latentkt.trapqa.build import ScenarioOptions, make_scenarios

    names = ("perturb", "model", "per_family", "checker", "per_response", "limit", "retries", "seed")
    made = make_scenarios(args.seeds, ScenarioOptions(**{name: getattr(args, name) for name in names}), out=args.out)
    print("\n".join(made.lines))
    return 0 if made.tests.passed else 2


RUN: dict[str, Callable[[argparse.Namespace], int]] = {
    "pairs": _pairs,
    "questions": _questions,
    "associations": _associations,
    "scenarios": _scenarios,
}
"""Stage -> what runs it; each returns the exit code."""
