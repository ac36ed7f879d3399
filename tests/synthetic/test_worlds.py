from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from latentkt.errors import DataError, InputError
from latentkt.synthetic import Cluster, World, WorldConfig, count_levels, load_world, make_world


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(WorldConfig(), seed=3)


def test_a_world_is_data(world, tmp_path):
    world.save(tmp_path / "world.json")
    assert load_world(tmp_path / "world.json") == world
    assert make_world(WorldConfig(), seed=3) == world != make_world(WorldConfig(), seed=4)


def test_every_cell_holds_every_level_once(world):
    for relation in range(2):
        for cluster in range(2):
            for polarity in range(2):
                cell = (world.cluster[relation] == cluster) & (world.polarity[relation] == polarity)
                assert sorted(world.counts[relation, cell]) == count_levels(WorldConfig().counts, 16).tolist()


def test_relations_count_apart(world):
    logs = np.log(world.counts)
    assert abs(np.corrcoef(logs)[0, 1]) < 0.1


@pytest.mark.parametrize("pairing", ["same", "opposed", "easy"])
def test_hold_outs_leave_every_key_as_many_partners(world, pairing):
    _, number = world.partners(pairing)
    assert len(set(number.ravel().tolist())) == 1
    expected = {"same": 15 - 4, "opposed": 16 - 4, "easy": 32}
    assert number[0, 0] == expected[pairing]


def test_nested_and_mirrored_keep_clusters_together():
    nested, mirrored = (make_world(replace(WorldConfig(), layout=name), seed=0) for name in ("nested", "mirrored"))
    assert np.array_equal(nested.cluster[0], nested.cluster[1])
    assert np.array_equal(nested.polarity[0], nested.polarity[1])
    assert np.array_equal(mirrored.cluster[0], mirrored.cluster[1])
    assert np.array_equal(mirrored.polarity[0], 1 - mirrored.polarity[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusters": (Cluster("one", 0.0),)}, "one cluster where two are needed"),
        ({"counts": {"kind": "table", "values": [0] * 16}}, "impossible counts"),
        ({"counts": {"kind": "geometric", "low": 0.1, "high": 4}}, "impossible counts"),
        ({"counts": {"kind": "nothing"}}, "no known kind"),
        ({"held_same": 7}, "leave nothing to train on"),
        ({"held_opposed": 16}, "leave nothing to train on"),
        ({"never_asked": 1.0}, "no entity is ever asked"),
        ({"held_out_templates": ("plain_question", "late_question")}, "every question template is held out"),
        ({"held_out_templates": ("sonnet",)}, "template is unknown"),
        ({"clusters": (Cluster("a", 0.0), Cluster("b", 0.9))}, "opposed_share"),
        ({"clusters": (Cluster("a", 0.0), Cluster("b", 0.2, noise=1.5))}, "noise"),
        ({"labels": "guessed"}, "labels"),
        ({"layout": "tangled"}, "layout"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        make_world(replace(WorldConfig(), **change), seed=0)


def test_hand_written_hold_outs_that_leave_nothing_are_refused(world):
    relation = 0
    same = np.argwhere(world.pairing_matrix("same")[relation])
    entity = int(same[0, 0])
    everything = tuple((relation, entity, int(other)) for first, other in same if first == entity)
    with pytest.raises(InputError, match="no same partner"):
        replace(world, never_paired=everything)


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "world.json"
    path.write_text("{}")
    with pytest.raises(DataError):
        load_world(path)
    path.write_text("[")
    with pytest.raises(DataError):
        load_world(path)


def test_zipf_counts_have_their_exponent():
    counts = count_levels({"kind": "zipf", "exponent": 1.5, "high": 100_000}, 10)
    rank = np.arange(10, 0, -1)
    assert np.polyfit(np.log(rank), np.log(counts), 1)[0] == pytest.approx(-1.5, abs=1e-3)


def test_json_is_plain(world):
    content = json.loads(world.to_json())
    assert content["relations"][0]["counts"] == list(world.relations[0].counts)
