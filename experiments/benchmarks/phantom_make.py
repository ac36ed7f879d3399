"""Making and verifying PhantomBench concepts: CPU time of one core, and whether the counts are right.

    python experiments/benchmarks/phantom_make.py DATA

DATA is the folder of development data. 62,000 terms are made from its term lists, then searched for in four casings in
its books; a slice of the books is counted again by plain `re`.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import resource
import time
from collections import Counter
from pathlib import Path

from latentkt.corpus import Matching
from latentkt.phantom import Concept, ScanSearch, Seeds, concept_key, load_seeds, make_concepts, verify
from latentkt.phantom.search.journal import Journal


def cpu() -> float:
    return time.process_time()


def memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB"


def first_texts(path: Path, n: int) -> list[str]:
    import zstandard

    with path.open("rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8")
        return [json.loads(line)["text"] for line, _ in zip(lines, range(n), strict=False)]


def plain_count(phrase: str, texts: list[str]) -> int:
    """The slow definition: whole words, white-space runs as one space, the distinct casings added up."""
    total = 0
    for casing in Matching(case="casings").casings(phrase):
        pattern = re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, casing.split())) + r"(?!\w)")
        for text in texts:
            at = pattern.search(text)
            while at:
                total += 1
                at = pattern.search(text, at.start() + 1)
    return total


def make(data: Path, n: int) -> tuple[Seeds, tuple[Concept, ...]]:
    start = cpu()
    seeds = load_seeds([data / "wordnet" / "wn30_term_lists.json", data / "terms" / "dict_headwords.json"])
    made = make_concepts(seeds, kind="term", n=n)
    spent = cpu() - start
    keys = {concept_key(concept.concept) for concept in made.concepts}
    known = {concept_key(text) for texts in seeds.by_category.values() for text in texts}
    methods = dict(Counter(concept.method for concept in made.concepts))
    print(f"{len(seeds):,} seeds -> {len(made.concepts):,} concepts ({methods}): {spent:.1f} CPU s, peak {memory()}")
    print(f"  different from each other: {len(keys):,}; equal to a seed: {len(keys & known)}")
    return seeds, made.concepts


def check_slice(data: Path, concepts: list[str], documents: int, phrases: int) -> None:
    texts = [text for text in first_texts(data / "gutenberg" / "gutenberg-69mb.jsonl.zst", documents)]
    rng = random.Random(0)
    words = [word for text in texts for word in text.split()]
    grams = [" ".join(words[at : at + rng.choice((1, 2, 3))]) for at in rng.sample(range(len(words) - 3), phrases)]
    chosen = [gram for gram in dict.fromkeys(grams + rng.sample(concepts, phrases)) if re.search(r"\w", gram)]
    folder = Path("slice.jsonl")
    folder.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    try:
        found = ScanSearch([str(folder)]).search(chosen, Journal(None, {}), lambda ticks: None)
    finally:
        folder.unlink()
    counts = found.matches.tolist()
    wrong = sum(plain_count(phrase, texts) != count for phrase, count in zip(chosen, counts, strict=True))
    there = sum(count > 0 for count in counts)
    print(f"slice of {documents} documents, {len(chosen)} phrases, {there} there: {wrong} counts differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=62_000)
    parser.add_argument("--documents", type=int, default=100, help="of the slice")
    parser.add_argument("--phrases", type=int, default=300, help="of either sort, on the slice")
    args = parser.parse_args()
    seeds, made = make(args.data, args.n)
    start = cpu()
    outcome = verify(made, ScanSearch([str(args.data / "gutenberg")]))
    spent = cpu() - start
    searched, kept = outcome.searched, Counter(concept.existence for concept in outcome.concepts)
    print(f"verified against {searched.tokens:,} words, compiling included: {spent:.1f} CPU s, peak {memory()}")
    print(f"  {dict(kept)}, in the corpus: {len(outcome.removed):,}")
    print(f"  no match allows {outcome.upper_per_million:.3f} per million words")
    check_slice(args.data, [concept.concept for concept in made], args.documents, args.phrases)
    start = cpu()
    real = verify(seeds.concepts("term"), ScanSearch([str(args.data / "gutenberg")]))
    print(f"seeds verified: {cpu() - start:.1f} CPU s")
    print(f"{'category':<26}{'seeds':>7}{'common':>8}{'between':>9}{'rare':>7}{'unattested':>12}")
    for category, counts in real.counts().items():
        row = [counts.get(name, 0) for name in ("common", "between", "rare", "unattested")]
        print(f"{category:<26}{sum(row):>7,}{row[0]:>8,}{row[1]:>9,}{row[2]:>7,}{row[3]:>12,}")


if __name__ == "__main__":
    main()
