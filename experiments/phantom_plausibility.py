"""How easily are made terms told from real ones? Areas under the ROC curve of two blind rules, by method and parameter.

    python experiments/phantom_plausibility.py DATA --tokenizer MODEL_FOLDER --read 50

A classifier of character trigrams and a rule on the number of tokens see the text of a concept and nothing else. Made
terms come from the seeds they are held against; folds and intervals keep a term with its parent together. `matched`
takes one made term a parent and one a blend at most (else a fold knows the blends of another), and as many real ones
within each category and number of words, so that the rules cannot live on length alone; `all` takes everything.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path

from latentkt.phantom import (
    BlendRules,
    Concept,
    ScanSearch,
    Seeds,
    TermRules,
    load_seeds,
    make_concepts,
    measure_plausibility,
    verify,
)

SETTINGS = {
    "default": TermRules(),
    "any position": TermRules(by_position=False),
    "all words exchanged": TermRules(by_position=False, keep_function_words=False),
    "parts of three": TermRules(blends=BlendRules(least_part=3)),
    "joins unattested": TermRules(blends=BlendRules(attested_join=False)),
    "joins unattested, parts of three": TermRules(blends=BlendRules(attested_join=False, least_part=3)),
}


def matched(made: list[Concept], real: list[Concept], seed: int) -> tuple[list[Concept], list[Concept]]:
    """As many of either within each category and number of words, one made term a parent at most."""
    rng = random.Random(seed)
    cells: dict[tuple[str, int], tuple[list[Concept], list[Concept]]] = {}
    used: set[str] = set()
    for concept in rng.sample(made, len(made)) + real:
        names = {concept.group, *blends_of(concept)} if concept.made else set()
        if names & used:
            continue
        used |= names
        cell = cells.setdefault((concept.category, len(concept.concept.split())), ([], []))
        cell[not concept.made].append(concept)
    chosen: tuple[list[Concept], list[Concept]] = ([], [])
    for cell in cells.values():
        n = min(map(len, cell))
        for into, own in zip(chosen, cell, strict=True):
            into += rng.sample(own, n)
    return chosen


def blends_of(concept: Concept) -> set[str]:
    """The made words of a term."""
    known = {word for parent in concept.parents for word in parent.split()}
    return set(concept.concept.split()) - known


def tokens_of(folder: str | None) -> Callable[[str], int]:
    if folder is None:
        return lambda text: len(text.split())
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return lambda text: len(tokenizer(" " + text, add_special_tokens=False)["input_ids"])


def report(name: str, made: list[Concept], real: list[Concept], count: Callable[[str], int]) -> None:
    for what, (one, other) in {"matched": matched(made, real, 0), "all": (made, real)}.items():
        if min(len(one), len(other)) < 50:
            print(f"{name:<34} {what:<8} too few: {len(one)} made, {len(other)} real")
            continue
        found = measure_plausibility(one, other, count=count)
        print(f"{name:<34} {what:<8} {found.n_made:>6,} made {found.n_real:>6,} real   "
              f"trigrams {found.trigrams:.3f}   count {found.counts:.3f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tokenizer", help="folder of a tokenizer; without it words are counted")
    parser.add_argument("--read", type=int, default=0, metavar="N", help="print N of each kind")
    parser.add_argument("--n", type=int, default=16_000)
    args = parser.parse_args()
    count = tokens_of(args.tokenizer)
    seeds = load_seeds([args.data / "wordnet" / "wn30_term_lists.json"])
    real = seeds.concepts("term")
    for name, rules in SETTINGS.items():
        made = verified(make_concepts(seeds, kind="term", n=args.n, rules=rules).concepts, args.data)
        for method in ("recombined", "blended"):
            own = [concept for concept in made if concept.method == method]
            report(f"{name}, {method}", own, real, count)
            if name == "default" and args.read:
                print("; ".join(c.concept for c in random.Random(0).sample(own, args.read)))
    names = institutions_and_awards(args.data)
    entities = verified(make_concepts(names, kind="entity").concepts, args.data)
    report("entities", entities, names.concepts("entity"), count)
    if args.read:
        print("; ".join(c.concept for c in random.Random(0).sample(entities, min(args.read, len(entities)))))


def institutions_and_awards(data: Path) -> Seeds:
    """Names of universities, workplaces and awards of physicists."""
    rows = [json.loads(line) for line in (data / "physicists" / "physicists.jsonl").read_text().splitlines()]
    fields = {"institution": ("alma_mater", "workplace"), "award": ("award",)}
    names = {
        category: [name.replace("_", " ") for row in rows for field in own for name in row["attributes"].get(field, [])]
        for category, own in fields.items()
    }
    return Seeds({category: tuple(dict.fromkeys(own)) for category, own in names.items()})


def verified(made: tuple[Concept, ...], data: Path) -> list[Concept]:
    return list(verify(made, ScanSearch([str(data / "gutenberg")])).concepts)


if __name__ == "__main__":
    main()
