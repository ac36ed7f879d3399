"""The stage `pairs`: profiles in, hard pairs out, with the log and the cleaned profiles beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentkt.errors import DataError, InputError, RunError
from latentkt.results import atomic_write, jsonl_output, read_json_lines, write_json_lines
from latentkt.trapqa.build.embedding import Embedder, embedder
from latentkt.trapqa.build.hard_pairs import HardPairs, hard_pairs, wanted_pairs
from latentkt.trapqa.build.log import StageLog, log_beside
from latentkt.trapqa.build.masking import linearise, remove_names
from latentkt.trapqa.build.profiles import Profile, load_profiles, save_profiles, usable
from latentkt.trapqa.build.reading import read_profiles

__all__ = ["READ", "PairFile", "load_pairs", "make_pairs"]

READ = (".profiles.jsonl", ".removed.jsonl", ".meta.json")
"""Endings of the files that `load_pairs` reads beside the pairs."""


@dataclass(frozen=True)
class PairFile:
    """Pairs, and what lies beside them.

    Attributes:
        pairs: The people of each pair, best first.
        scores: Equation 1 of each.
        everybody: All usable profiles.
        log: Removals so far.
        meta: How the file was made.
    """

    pairs: tuple[tuple[Profile, Profile], ...]
    scores: tuple[float, ...]
    everybody: tuple[Profile, ...]
    log: StageLog
    meta: Mapping[str, Any]


def make_pairs(
    source: str | Path,
    *,
    out: str | Path,
    top: int | None = None,
    fraction: float | None = None,
    embed: str | Embedder = "minilm",
    fields: Mapping[str, str] | None = None,
    licence: str = "not stated",
    seed: int = 0,
) -> list[str]:
    """Mine hard pairs and write them; a stage that is there already, with the same options and source, is left alone.

    Args:
        source: Profiles, see `read_profiles`.
        out: The pairs, a `.jsonl` file. Beside it lie `.profiles.jsonl`, `.removed.jsonl`, `.meta.json` and
            `.embeddings.npz`, which spares a later run the embedding.
        top: How many pairs.
        fraction: Which share of all pairs; one of the two is given.
        embed: An embedder or its name, see `embedder`.
        fields: Field map of the profiles.
        licence: Of the profiles, for the data card.
        seed: Of the SVD, where there is one.

    Returns:
        Lines that say what was done.

    Raises:
        RunError: `out` was written with other options.
        InputError: An option is wrong, or fewer than two profiles are usable.
    """
    path = jsonl_output(out, [source], beside=(*READ, ".embeddings.npz"))
    named = embed if isinstance(embed, Embedder) else None
    options = {
        "source": Path(source).name,
        "source_sha256": _hash(source),
        "embedding": named.name if named else embed,
        "top": top,
        "fraction": fraction,
        "fields": dict(fields or {}),
        "licence": licence,
        "seed": seed,
    }
    known = _known_meta(path)
    if known is not None:
        if known["options"] != options:
            raise RunError(
                f"{path} was written with other options",
                expected=options,
                found=known["options"],
                fix="choose another name, or remove the file",
            )
        return [f"{path} is there already: {known['pairs']} pairs"]
    log = StageLog()
    everybody = _comparable(usable(read_profiles(source, fields), log), log)
    wanted = wanted_pairs(len(everybody), top=top, fraction=fraction)
    masked = [remove_names(person) for person in everybody]
    embedding = named or embedder(str(embed), seed=seed)
    vectors = _embedded(embedding, masked, path)
    found = hard_pairs(vectors, np.array([profile.tag_count for profile in masked]), top=wanted)
    log.remove_many("pairs", "below the cut", found.n_pairs - len(found))
    log.count("pairs", kept=len(found))
    meta = {"options": options, **_facts(found, embedding, everybody)}
    _write(path, found, everybody, log, meta)
    return _lines(path, found, log, meta)


def _comparable(everybody: Sequence[Profile], log: StageLog) -> list[Profile]:
    """Without those whose attributes were nothing but their name."""
    kept = []
    for person in everybody:
        if remove_names(person).attributes:
            kept.append(person)
        else:
            log.remove("profiles", person.id, "no attributes but the name", person.name)
    log.count("profiles", kept=len(kept))
    return kept


def _embedded(embedding: Embedder, masked: Sequence[Profile], path: Path) -> np.ndarray:
    """The vectors, from the file beside the pairs if the texts and the embedder are the same."""
    texts = [linearise(profile) for profile in masked]
    mark = hashlib.sha256("\0".join((embedding.name, *texts)).encode()).hexdigest()
    cache = path.with_suffix(".embeddings.npz")
    if cache.exists():
        with np.load(cache) as kept:
            if str(kept["mark"]) == mark:
                return kept["vectors"]
    vectors = embedding(texts)
    with atomic_write(cache) as file:
        np.savez(file, mark=np.array(mark), vectors=vectors)
    return vectors


def _facts(found: HardPairs, embedding: Embedder, everybody: Sequence[Profile]) -> dict[str, Any]:
    return {
        "people": len(everybody),
        "all_pairs": found.n_pairs,
        "pairs": len(found),
        "fraction": found.fraction,
        "median_tag_count": found.median_tags,
        "lowest_score": float(found.score[-1]),
        "embedding": embedding.name,
        "embedding_licence": embedding.licence,
    }


def _write(path: Path, found: HardPairs, everybody: Sequence[Profile], log: StageLog, meta: Mapping[str, Any]) -> None:
    save_profiles(everybody, path.with_suffix(".profiles.jsonl"))
    log.save(log_beside(path))
    write_json_lines(_rows(found, everybody), path)
    with atomic_write(path.with_suffix(".meta.json")) as file:  # last: it says that the stage is finished
        file.write(json.dumps(meta, ensure_ascii=False, indent=1).encode() + b"\n")


def _rows(found: HardPairs, everybody: Sequence[Profile]) -> Iterable[dict[str, Any]]:
    columns = zip(found.first, found.second, found.score, found.cosine, strict=True)
    for rank, (first, second, score, cosine) in enumerate(columns, start=1):
        one, other = everybody[first], everybody[second]
        yield {
            "rank": rank,
            "first": one.id,
            "second": other.id,
            "names": [one.name, other.name],
            "score": round(float(score), 6),
            "cosine": round(float(cosine), 6),
        }


def _lines(path: Path, found: HardPairs, log: StageLog, meta: Mapping[str, Any]) -> list[str]:
    (row,) = (row for row in log.table() if row["stage"] == "profiles")
    rules = "".join(f"; {rule} {n}" for rule, n in row["rules"].items())
    return [
        f"profiles: {row['kept']} of {row['given']} usable{rules}",
        f"embedding: {meta['embedding']}",
        f"pairs: {len(found)} of {found.n_pairs:,} ({100 * found.fraction:.4g} %), lambda {found.median_tags:g}, "
        f"scores {found.score[0]:.4f} to {found.score[-1]:.4f}",
        str(path),
    ]


def load_pairs(path: str | Path) -> PairFile:
    """Read what `make_pairs` wrote.

    Raises:
        InputError: The stage was not finished.
        DataError: A line is wrong.
    """
    path = Path(path)
    meta = _known_meta(path)
    if meta is None:
        raise InputError(
            f"no pairs {path}", expected="a file that `latentkt trapqa pairs` finished", fix="run it again"
        )
    everybody = load_profiles(path.with_suffix(".profiles.jsonl"))
    people = {person.id: person for person in everybody}

    def pair(row: dict[str, Any], where: str) -> tuple[tuple[Profile, Profile], float]:
        try:
            return (people[row["first"]], people[row["second"]]), float(row["score"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{where}: no pair", expected="a line that `pairs` wrote") from error

    found = list(read_json_lines(path, pair))
    return PairFile(
        tuple(pair for pair, _ in found),
        tuple(score for _, score in found),
        tuple(everybody),
        StageLog.load(log_beside(path)),
        meta,
    )


def _known_meta(path: Path) -> dict[str, Any] | None:
    beside = path.with_suffix(".meta.json")
    return json.loads(beside.read_text(encoding="utf-8")) if beside.exists() and path.exists() else None


def _hash(source: str | Path) -> str:
    try:
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"no profiles {source}: {error.strerror}", expected="an existing file") from error
