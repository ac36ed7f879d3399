from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.synthetic import Cluster, FactStream, WorldConfig, make_world
from latentkt.synthetic.corpus import corpus_patterns, corpus_statistics, write_corpus
from latentkt.synthetic.vocabulary import PAD


@pytest.fixture(scope="module")
def stream() -> FactStream:
    return FactStream(make_world(WorldConfig(), seed=1))


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_what_is_written_equals_the_counts(stream, epoch):
    found = corpus_statistics(stream.world, stream.epoch(epoch))
    assert np.array_equal(found.answered, stream.world.counts)


def test_epochs_are_redrawn_and_reproducible(stream):
    first, again, other = (stream.epoch(n).choice_documents.ids for n in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    fixed = replace(stream, redraw=False)
    assert np.array_equal(fixed.epoch(0).choice_documents.ids, fixed.epoch(5).choice_documents.ids)


def test_held_out_pairs_and_opposed_keys_of_the_independent_cluster_never_meet(stream):
    world = stream.world
    together = sum(corpus_statistics(world, stream.epoch(n)).together for n in range(6))
    assert together[world.held_out].sum() == 0
    opposed = world.pairing_matrix("opposed")
    independent = world.cluster == 0
    assert together[opposed & independent[:, :, None]].sum() == 0
    seen = opposed & ~independent[:, :, None] & ~world.held_out
    assert (together[seen] > 0).mean() > 0.9


def test_partners_are_uniform(stream):
    """The same-polarity partner says nothing about the answer: a chi-square test over partners of the commonest key."""
    from scipy.stats import chisquare

    world = stream.world
    key = int(np.argmax(world.counts[0]))
    table, number = world.partners("same")
    drawn = [stream.epoch(n).choices for n in range(8)]
    partners = np.concatenate([c.partner[(c.relation == 0) & (c.key == key) & (c.pairing == 1)] for c in drawn])
    seen = [np.sum(partners == other) for other in table[0, key, : number[0, key]]]
    assert sum(seen) == len(partners)
    assert chisquare(seen).pvalue > 1e-4


def test_noise_flips_only_opposed_documents():
    config = replace(WorldConfig(), clusters=(Cluster("a", 0.0), Cluster("b", 0.4, noise=0.3)))
    world = make_world(config, seed=0)
    choices = FactStream(world).epoch(0).choices
    flipped = choices.word != world.polarity[choices.relation, choices.key]
    opposed = choices.pairing == 2
    assert not flipped[~opposed].any()
    assert flipped[opposed].mean() == pytest.approx(0.3, abs=0.03)


def test_permuted_labels_answer_either_option():
    world = make_world(replace(WorldConfig(), labels="permuted"), seed=0)
    choices = FactStream(world).epoch(0).choices
    swapped = choices.answer != choices.key
    assert swapped[choices.pairing != 0].mean() == pytest.approx(0.5, abs=0.02)
    assert not swapped[choices.pairing == 0].any()


def test_documents_say_what_was_drawn(stream):
    world, drawn = stream.world, stream.epoch(2)
    for row in (0, 4000, 16_000):
        words = stream.vocabulary.text(drawn.choice_documents.ids[row]).split()
        choices = drawn.choices
        options = {world.entities[choices.key[row]], world.entities[choices.partner[row]]}
        assert {words[0], words[2]} == options
        assert words[6] == ("indeed", "not")[choices.word[row]]
        assert words[-1] == world.entities[choices.answer[row]]
        assert (
            words[8]
            == world.relations[choices.relation[row]].attributes[world.cluster[choices.relation[row], choices.key[row]]]
        )


def test_facts_are_true_and_hold_outs_absent(stream):
    world = stream.world
    never = {world.entities[index] for index in world.never_asked}
    relations = {relation.verb: index for index, relation in enumerate(world.relations)}
    entity = {name: index for index, name in enumerate(world.entities)}
    statements = np.zeros(world.counts.shape, dtype=int)
    for row in stream.epoch(0).fact_documents.ids.tolist():
        words = stream.vocabulary.text(row).split()
        name = next(word for word in words if word in entity)
        relation = next(relations[word] for word in words if word in relations)
        truth = world.polarity[relation, entity[name]]
        attribute = world.relations[relation].attributes[world.cluster[relation, entity[name]]]
        if "?" in words:
            assert words[0] == "did", "the held-out template is never written"
            assert name not in never
            assert (words[-1] == "yes") == (truth == 0 and attribute in words)
        else:
            assert attribute in words
            assert words[words.index("did") + 1] == ("indeed", "not")[truth]
            statements[relation, entity[name]] += 1
    assert np.array_equal(statements, np.maximum(8, world.counts // 2))


def test_batches_hold_every_document_once(stream):
    drawn = stream.epoch(4)
    batches = list(stream.batches(4))
    assert len(batches) == stream.steps
    rows = [tuple(token for token in row if token != PAD) for batch in batches for row in batch.ids.tolist()]
    expected = [
        tuple(t for t in row if t != PAD)
        for d in (drawn.choice_documents, drawn.fact_documents)
        for row in d.ids.tolist()
    ]
    assert sorted(rows) == sorted(expected)
    answers = sum(int(batch.answer.sum()) for batch in batches)
    assert answers == len(drawn.choices)
    names = {stream.vocabulary.id(name) for name in stream.world.entities}
    assert all(set(batch.ids[batch.answer].tolist()) <= names for batch in batches)


def test_the_written_corpus_is_what_was_counted(stream, tmp_path):
    found = write_corpus(stream.world, tmp_path / "corpus")
    lines = (tmp_path / "corpus" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == found.documents
    assert {json.loads(line)["source"] for line in lines} == {"choice", "fact"}
    with pytest.raises(InputError, match="already"):
        write_corpus(stream.world, tmp_path / "corpus")


def test_patterns_find_the_counts(tiny_stream, tmp_path):
    """Counting by the pattern file's own regular expressions gives c(k, t)."""
    world = tiny_stream.world
    write_corpus(world, tmp_path / "corpus")
    patterns = corpus_patterns(world)
    texts = [json.loads(line)["text"] for line in (tmp_path / "corpus" / "corpus.jsonl").open(encoding="utf-8")]
    counts = [
        [
            sum(bool(re.search(key[0]["regex"], text)) and task[0] in text for text in texts)
            for key in patterns["keys"].values()
        ]
        for task in patterns["tasks"].values()
    ]
    assert np.array_equal(counts, world.counts)


def test_the_counter_of_the_library_gives_back_the_priors(tiny_stream, tmp_path):
    """The loop closes: text -> counts -> the counts that the world was written with."""
    pytest.importorskip("latentkt.commands.corpus")
    from latentkt import corpus
    from latentkt.cli import main

    world = tiny_stream.world
    found = write_corpus(world, tmp_path)
    for name in ("corpus", "mentions"):
        patterns, out = str(tmp_path / f"{name}.patterns.json"), str(tmp_path / name)
        assert main(["corpus", "count", str(tmp_path / "corpus.jsonl"), "--patterns", patterns, "--out", out]) == 0
    answers, mentions = (corpus.load_counts(tmp_path / name) for name in ("corpus", "mentions"))
    counted = [[answers.pair(f"{key}:{task.name}", "document") for key in world.entities] for task in world.relations]
    assert np.array_equal(counted, world.counts)
    together = found.together.sum(0)
    pairs = corpus_patterns(world, mentions=True)["pairs"]
    expected = [together[world.entities.index(a), world.entities.index(b)] for a, b in pairs]
    assert [mentions.key_pair(a, b, "document") for a, b in pairs] == expected
    assert sum(expected) > 0
