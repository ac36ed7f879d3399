"""Terms: affixes and cuts against a slow definition, blends, and what every made term must satisfy."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.errors import DataError, InputError
from latentkt.phantom import BlendRules, EntityRules, Seeds, TermRules, concept_key, load_seeds, make_concepts
from latentkt.phantom.affixes import Affixes, collect_affixes
from latentkt.phantom.blending import make_blends
from latentkt.phantom.words import english, is_numeric, script

SCIENCE = (
    "nuclear chemistry", "cell wall", "electric field strength", "conservation of energy",
    "magnetic resonance imaging scan",
    "osmosis", "macromolecule", "hydrolysis", "cardiology", "carbonate buffer", "chemotherapy", "thermal conduction",
    "nuclear reaction", "cell division", "electrolysis", "psychotherapy", "magnetic moment", "carbonate rock",
    "a b c d e",
    "thermal capacity",
)  # fmt: skip
WORDS = st.text("abcdeí", min_size=1, max_size=7)


def slow_affixes(words, more_than):
    words = {word.lower() for word in words}
    starts = Counter(word[:n] for word in words for n in range(2, len(word)))
    ends = Counter(word[-n:] for word in words for n in range(2, len(word)))
    return tuple({affix for affix, n in counts.items() if n > more_than} for counts in (starts, ends))


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=40), st.integers(1, 4))
def test_affixes_are_those_of_the_slow_definition(words, more_than):
    found = collect_affixes(words, more_than=more_than)
    starts, ends = slow_affixes(words, more_than)
    assert found.prefixes == starts | english().prefixes and found.suffixes == ends | english().suffixes
    assert found.n_found == len(starts - english().prefixes) + len(ends - english().suffixes)


@settings(max_examples=80, deadline=None)
@given(
    WORDS,
    st.sets(WORDS.filter(lambda w: len(w) > 1), max_size=8),
    st.sets(WORDS.filter(lambda w: len(w) > 1), max_size=8),
)
def test_a_word_is_cut_at_its_longest_affix(word, prefixes, suffixes):
    affixes = Affixes(frozenset(prefixes), frozenset(suffixes), max(map(len, prefixes | suffixes), default=0), 0)
    starts = {len(p): len(p) for p in prefixes if word.startswith(p) and len(word) - len(p) >= 2}
    ends = {len(s): len(word) - len(s) for s in suffixes if word.endswith(s) and len(word) - len(s) >= 2}
    longest = max([*starts, *ends], default=None)
    expected = None if longest is None else starts.get(longest, ends.get(longest))
    assert affixes.cut(word) == expected


def test_blends_are_made_of_their_parents():
    words = [word for seed in SCIENCE for word in seed.split()]
    affixes = collect_affixes(words)
    blends = make_blends(words, affixes, rng=random.Random(0), rules=BlendRules(most=30))
    assert len(blends) == len({blend.word for blend in blends}) == 24
    pieces = {word[at : at + 3].lower() for word in words for at in range(len(word))}
    for blend in blends:
        first, last = blend.parents
        cuts = affixes.cut(first, least=2), affixes.cut(last, least=2)
        assert blend.word == first[: cuts[0]] + last[cuts[1] :] and blend.word not in words
        assert {blend.word[cuts[0] - 2 : cuts[0] + 1], blend.word[cuts[0] - 1 : cuts[0] + 2]} <= pieces
    loose = make_blends(words, affixes, rng=random.Random(0), rules=BlendRules(most=300, attested_join=False))
    assert len(loose) > len(make_blends(words, affixes, rng=random.Random(0), rules=BlendRules(most=300)))


def test_blends_stay_in_one_script_and_leave_capitals_alone():
    words = [
        "геология",
        "морфология",
        "зоология",
        "хромосома",
        "хроматин",
        "cardiology",
        "morphology",
        "chromosome",
        "HAART",
        "B-52",
        "mi\u0441ro",
    ]
    assert script("mi\u0441ro") is None  # a Cyrillic letter among Latin ones
    rules = BlendRules(most=50, attested_join=False)
    blends = make_blends(words, collect_affixes(words, more_than=0), rng=random.Random(1), rules=rules)
    assert {script(blend.word) for blend in blends} == {"LATIN", "CYRILLIC"}
    assert not {"HAART", "B-52", "mi\u0441ro"} & {parent for blend in blends for parent in blend.parents}


def check_term(concept, seeds, rules):
    """Everything that is promised about one made term."""
    parent = concept.parents[0].split()
    words = concept.concept.split()
    assert concept.parents[0] in seeds and len(parent) == len(words) <= rules.most_words
    half = max(1, len(words) // 2)
    changed = [place for place, (old, new) in enumerate(zip(parent, words, strict=True)) if old != new]
    first, last = set(range(half)), set(range(len(words) - half, len(words)))
    assert changed and (set(changed) <= first or set(changed) <= last)
    known = {word for seed in seeds for word in seed.split()}
    made = [words[place] for place in changed if words[place] not in known]
    assert concept.method == ("blended" if made else "recombined")
    assert len(concept.parents) == 1 + len(changed) + len(made)
    if rules.keep_function_words:
        fixed = english().function_words
        assert not any(
            is_numeric(parent[p]) or parent[p].lower() in fixed or words[p].lower() in fixed for p in changed
        )
    else:
        assert set(changed) in (first, last)


@pytest.mark.parametrize("rules", [TermRules(), TermRules(by_position=False), TermRules(keep_function_words=False)])
def test_every_made_term_keeps_its_promises(rules):
    seeds = Seeds({"science": SCIENCE})
    made = make_concepts(seeds, kind="term", n=250, seed=1, rules=rules)
    assert len(made.concepts) == 250 and made.shortfall == 0
    keys = [concept_key(concept.concept) for concept in made.concepts]
    assert len(set(keys)) == 250 and not set(keys) & {concept_key(seed) for seed in SCIENCE}
    for concept in made.concepts:
        check_term(concept, SCIENCE, rules)
    assert {concept.method for concept in made.concepts} == {"recombined", "blended"}


def test_words_are_drawn_where_they_may_stand():
    made = make_concepts(Seeds({"s": SCIENCE}), kind="term", n=200, rules=TermRules(blends=BlendRules(most=0)))
    fixed = english().function_words

    def places(texts, heads):
        split = [text.split() for text in texts]
        is_head = [[[*words, "of"][at + 1].lower() in fixed for at in range(len(words))] for words in split]
        return {
            w
            for words, own in zip(split, is_head, strict=True)
            for w, head in zip(words, own, strict=True)
            if head == heads
        }

    changed_of = 0
    for concept in made.concepts:
        old, new = concept.parents[0].split(), concept.concept.split()
        for at, (before, after) in enumerate(zip(old, new, strict=True)):
            head = [*old, "of"][at + 1].lower() in fixed
            assert before == after or after in places(SCIENCE, head)
            changed_of += before != after and head and at + 1 < len(old)
    assert changed_of > 0  # the word before "of" among them
    assert {concept.method for concept in made.concepts} == {"recombined"}
    assert all(len(concept.concept.split()) > 1 for concept in made.concepts)  # one word of a seed is no new term


def test_same_seed_same_output_and_categories_do_not_disturb_each_other():
    one = Seeds({"a": SCIENCE, "b": ("statutory law", "false verdict", "judicial review")})
    made = make_concepts(one, kind="term", seed=5)
    assert make_concepts(one, kind="term", seed=5).concepts == made.concepts
    assert make_concepts(one, kind="term", seed=6).concepts != made.concepts
    alone = make_concepts(Seeds({"a": SCIENCE}), kind="term", seed=5)
    assert alone.concepts == tuple(concept for concept in made.concepts if concept.category == "a")
    assert len(alone.concepts) <= 2 * 18  # two of each seed of at most four words


def test_ten_seeds_give_what_they_can_and_say_so():
    pairs = (
        "fair trial",
        "open writ",
        "long lease",
        "true bill",
        "calm plea",
        "mock jury",
        "hung panel",
        "petty theft",
    )
    seeds = Seeds({"law": (*pairs, "arson", "tort")})
    made = make_concepts(seeds, kind="term", n=1000)
    assert 0 < len(made.concepts) < 1000 and made.shortfall == 1000 - len(made.concepts)
    assert sum(made.rejected.values()) >= 1000


@pytest.mark.parametrize("texts", [("1984", "12 34", "3.5"), ("of the", "and"), ("a b c d e",), ("word",)])
def test_seeds_of_which_nothing_can_be_made(texts):
    with pytest.raises(DataError, match="no term can be made"):
        make_concepts(Seeds({"x": texts}), kind="term")


def test_seeds_of_one_word_become_blends():
    words = (
        "hydrolysis",
        "electrolysis",
        "chemotherapy",
        "psychotherapy",
        "cardiology",
        "dermatology",
        "macromolecule",
    )
    made = make_concepts(Seeds({"x": words}), kind="term")
    assert made.concepts and {concept.method for concept in made.concepts} == {"blended"}
    assert not {concept.concept for concept in made.concepts} & set(words)


def test_wrong_requests():
    seeds = Seeds({"x": SCIENCE})
    with pytest.raises(InputError, match="number of concepts"):
        make_concepts(seeds, kind="term", n=0)
    for kind, rules in (("entity", TermRules()), ("term", EntityRules()), ("thing", None)):
        with pytest.raises(InputError, match="kind and rules"):
            make_concepts(seeds, kind=kind, rules=rules)


def test_numbers_of_the_issue(data_dir):
    """62,000 concepts of the development seeds: all different, none a seed, in far less than two minutes."""
    seeds = load_seeds([data_dir / "wordnet" / "wn30_term_lists.json", data_dir / "terms" / "dict_headwords.json"])
    began = time.process_time()
    made = make_concepts(seeds, kind="term", n=62_000)
    assert time.process_time() - began < 120
    keys = {concept_key(concept.concept) for concept in made.concepts}
    assert len(keys) == len(made.concepts) == 62_000
    assert not keys & {concept_key(text) for texts in seeds.by_category.values() for text in texts}


MILLION = """
import random, resource
from latentkt.phantom import Seeds, make_concepts
rng = random.Random(0)
syllables = [a + b for a in "bcdlmnrst" for b in "aeiou"]
words = ["".join(rng.choices(syllables, k=rng.randrange(2, 5))) for _ in range(60_000)]
texts = tuple(dict.fromkeys(f"{rng.choice(words)} {rng.choice(words)}" for _ in range(1_000_000)))
assert len(texts) > 990_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = make_concepts(Seeds({"x": texts}), kind=KIND, n=1000)
print(len(made.concepts), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "megabytes"), [("term", 1000), ("entity", 1500)])
def test_a_million_seeds_in_bounded_memory(kind, megabytes):
    done = subprocess.run(
        [sys.executable, "-c", MILLION.replace("KIND", repr(kind))], capture_output=True, text=True, check=False
    )
    if kind == "term":
        made, used = map(int, done.stdout.split())
        assert made == 1000 and used < megabytes
    else:  # words in random pairs share no n-gram often enough, and that is said
        assert "no entity can be made" in done.stderr
