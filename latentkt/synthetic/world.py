"""A world: entities (keys), relations (tasks), exact counts, and which keys may meet. Plain data, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError, InputError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["Cluster", "Relation", "World", "load_world"]

FORMAT = "latentkt.world/1"
RELATION_LISTS = ("attributes", "counts", "cluster", "polarity")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Entities that share an attribute in every relation, and how often opposed ones meet in a document.

    Attributes:
        name: What results call it.
        opposed_share: Share of an entity's choice documents whose other option is opposed (same attribute, other
            polarity). 0: the opposed keys of this cluster never co-occur in any document of the corpus.
        noise: Chance that the polarity word of such a document is the wrong one (δ). At .5 the word says nothing.
    """

    name: str
    opposed_share: float
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Relation:
    """A task: its verb, one attribute for each cluster, and the exact count of every entity.

    Attributes:
        name: What results call it.
        verb: The word that stands for it in a document.
        attributes: One word for each cluster.
        counts: Choice documents an epoch in which the entity is the answer, one number for each entity: c(k, t).
        cluster: Index of each entity's cluster, and so of its attribute.
        polarity: 0 (the fact holds) or 1 (it does not), one for each entity.
    """

    name: str
    verb: str
    attributes: tuple[str, ...]
    counts: tuple[int, ...]
    cluster: tuple[int, ...]
    polarity: tuple[int, ...]


@dataclass(frozen=True)
class World:
    """Everything that is true of a synthetic corpus.

    In each relation every entity has a cluster, a polarity (0: the fact holds, 1: it does not) and a count of its own,
    so that frequency in one relation can be told from frequency in the other.

    Attributes:
        seed: What it was made from; also seeds every draw of documents.
        entities: One word for each entity.
        clusters: The groups.
        relations: The tasks.
        easy_share: Share of choice documents whose other option is of another cluster (answer determined).
        never_paired: (relation, entity, entity) that are never the options of one document (held out for measuring).
        never_asked: Entities about which no question is ever asked.
        held_out_templates: Names of templates that are never written.
        labels: "drawn" by the counts, or "permuted" within each pair of options of one cluster (the world in which
            frequency and constraint say nothing about the answer: predictions of the law are false in it).
        statements: (smallest number, share of the count) of statements of a fact in an epoch.
        questions: (about the own attribute, about every other attribute of the relation) in an epoch, for each fact.
    """

    seed: int
    entities: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    relations: tuple[Relation, ...]
    easy_share: float
    never_paired: tuple[tuple[int, int, int], ...] = ()
    never_asked: tuple[int, ...] = ()
    held_out_templates: tuple[str, ...] = ()
    labels: str = "drawn"
    statements: tuple[int, float] = (8, 0.5)
    questions: tuple[int, int] = (24, 12)

    def __post_init__(self) -> None:
        for check in (_check_entities, _check_clusters, _check_relations, _check_hold_outs):
            check(self)

    @property
    def counts(self) -> Int[np.ndarray, "relation entity"]:
        """c(k, t), exact."""
        return np.array([relation.counts for relation in self.relations], dtype=np.int64)

    @cached_property
    def cluster(self) -> Int[np.ndarray, "relation entity"]:
        """Cluster of each entity, by relation."""
        return np.array([relation.cluster for relation in self.relations])

    @cached_property
    def polarity(self) -> Int[np.ndarray, "relation entity"]:
        """Polarity of each entity, by relation."""
        return np.array([relation.polarity for relation in self.relations])

    @property
    def log_pi(self) -> Float[np.ndarray, "relation entity"]:
        """Log π(k, t) over all pairs of entity and relation."""
        counts = self.counts
        return np.log(counts / counts.sum())

    def partners(
        self, pairing: str
    ) -> tuple[Int[np.ndarray, "relation entity most"], Int[np.ndarray, "relation entity"]]:
        """The entities that may be the other option: a table padded with -1, and the number in each row.

        Args:
            pairing: "same" (cluster and polarity), "opposed" (cluster, other polarity) or "easy" (another cluster).
        """
        allowed = self.pairing_matrix(pairing) & ~self.held_out
        number = allowed.sum(-1)
        table = np.full((*number.shape, max(int(number.max()), 1)), -1)
        for place in np.ndindex(number.shape):
            table[place][: number[place]] = np.flatnonzero(allowed[place])
        return table, number

    def pairing_matrix(self, pairing: str) -> Bool[np.ndarray, "relation entity entity"]:
        """Which entities stand in a pairing, held-out pairs included."""
        together = self.cluster[:, :, None] == self.cluster[:, None, :]
        alike = self.polarity[:, :, None] == self.polarity[:, None, :]
        if pairing == "same":
            return together & alike & ~np.eye(len(self.entities), dtype=bool)
        if pairing == "opposed":
            return together & ~alike
        if pairing == "easy":
            return ~together
        raise InputError(f"pairing {pairing!r} is unknown", expected="same, opposed or easy", found=pairing)

    @cached_property
    def held_out(self) -> Bool[np.ndarray, "relation entity entity"]:
        """Which pairs are never the options of one document."""
        held = np.zeros((len(self.relations), len(self.entities), len(self.entities)), dtype=bool)
        for relation, first, second in self.never_paired:
            held[relation, first, second] = held[relation, second, first] = True
        return held

    def to_json(self) -> str:
        """The world as text; `load_world` gives back an equal one."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    def save(self, path: Path) -> None:
        """Write it to a JSON file."""
        path.write_text(self.to_json(), encoding="utf-8")


def load_world(path: Path) -> World:
    """Read a world from a JSON file.

    Raises:
        DataError: If the file is no world.
        InputError: If the world cannot be (its message says why).
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return world_from_dict(content)
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is not a world", expected=f"JSON with format {FORMAT!r}", found=f"{type(error).__name__}: {error}"
        ) from error


def world_from_dict(content: Mapping[str, Any]) -> World:
    """Build a world from the object that `World.to_json` writes."""
    fields = dict(content)
    if fields.pop("format", None) != FORMAT:
        raise DataError("this is no world", expected=f"format {FORMAT!r}", found=content.get("format"))
    fields["clusters"] = tuple(Cluster(**row) for row in fields["clusters"])
    fields["relations"] = tuple(
        Relation(row["name"], row["verb"], *(tuple(row[name]) for name in RELATION_LISTS))
        for row in fields["relations"]
    )
    fields["never_paired"] = tuple((int(r), int(a), int(b)) for r, a, b in fields["never_paired"])
    for name in ("entities", "never_asked", "held_out_templates", "statements", "questions"):
        fields[name] = tuple(fields[name])
    return World(**fields)


def _refuse(what: str, expected: object, found: object, fix: str | None = None) -> None:
    raise InputError(f"this world cannot be: {what}", expected=expected, found=found, fix=fix)


def _check_entities(world: World) -> None:
    number = len(world.entities)
    if len(set(world.entities)) != number:
        _refuse("two entities share a word", "distinct words", world.entities)
    if world.labels not in {"drawn", "permuted"}:
        _refuse("labels are of no known kind", "drawn or permuted", world.labels)


def _check_clusters(world: World) -> None:
    if len(world.clusters) < 2:
        _refuse(
            "one cluster where two are needed",
            "at least 2 clusters (easy documents take their other option from another one)",
            len(world.clusters),
        )
    if not 0 <= world.easy_share <= 1:
        _refuse("easy_share is no share", "0 to 1", world.easy_share)
    for cluster in world.clusters:
        if not 0 <= cluster.opposed_share <= 1 - world.easy_share:
            _refuse(
                f"opposed_share of cluster {cluster.name!r}", f"0 to {1 - world.easy_share:g}", cluster.opposed_share
            )
        if not 0 <= cluster.noise <= 1:
            _refuse(f"noise of cluster {cluster.name!r} is no probability", "0 to 1", cluster.noise)


def _check_relations(world: World) -> None:
    if not world.relations:
        _refuse("no relation", "at least one", 0)
    for relation in world.relations:
        for name in ("counts", "cluster", "polarity"):
            found = len(getattr(relation, name))
            if found != len(world.entities):
                _refuse(f"{name} of relation {relation.name!r}", f"{len(world.entities)} numbers", found)
        if set(relation.cluster) != set(range(len(world.clusters))):
            _refuse(
                f"a cluster is empty or unknown in relation {relation.name!r}",
                f"indices 0 to {len(world.clusters) - 1}",
                sorted(set(relation.cluster)),
            )
        if not set(relation.polarity) <= {0, 1}:
            _refuse(f"a polarity of relation {relation.name!r}", "0 or 1", sorted(set(relation.polarity)))
        bad = [count for count in relation.counts if count < 1 or count != int(count)]
        if bad:
            _refuse(
                f"impossible counts in relation {relation.name!r}",
                "whole numbers of at least 1",
                bad[:5],
                "a key with count 0 has no prior; leave it out",
            )
        if len(relation.attributes) != len(world.clusters):
            _refuse(f"attributes of {relation.name!r}", f"{len(world.clusters)} words", relation.attributes)


def _check_hold_outs(world: World) -> None:
    from latentkt.synthetic.templates import QUESTIONS, STATEMENTS

    for templates, kind in ((STATEMENTS, "statement"), (QUESTIONS, "question")):
        if all(name in world.held_out_templates for name in templates):
            _refuse(f"every {kind} template is held out", "at least one that is written", list(templates))
    unknown = set(world.held_out_templates) - set(STATEMENTS) - set(QUESTIONS)
    if unknown:
        _refuse("a held-out template is unknown", sorted({*STATEMENTS, *QUESTIONS}), sorted(unknown))
    if len(set(world.never_asked)) >= len(world.entities):
        _refuse("no entity is ever asked about", f"fewer than {len(world.entities)}", len(set(world.never_asked)))
    for pairing in ("same", "opposed"):
        _check_partners(world, pairing)


def _check_partners(world: World, pairing: str) -> None:
    _, number = world.partners(pairing)
    opposed = np.array([cluster.opposed_share for cluster in world.clusters])[world.cluster]
    share = opposed if pairing == "opposed" else 1 - world.easy_share - opposed
    alone = np.argwhere((share > 1e-12) & (number == 0))
    if len(alone):
        relation, entity = alone[0]
        name = world.relations[relation].name
        _refuse(
            f"the hold-outs leave {world.entities[entity]!r} no {pairing} partner in {name!r}",
            "at least one pair that is seen",
            "0",
            "hold out fewer pairs, or give the cluster more entities",
        )
