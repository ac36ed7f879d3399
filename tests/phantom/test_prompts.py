"""Questions: pools for every property and kind, draws by seed, spans that hold the concept."""

from __future__ import annotations

import json
import re

import pytest

from latentkt.errors import DataError, InputError
from latentkt.phantom import Concept, load_pools, load_prompts, make_prompts, save_prompts
from latentkt.phantom.prompts import BASIC, POOLS, PROPERTIES

TERM = Concept.make('a "quoted" {concept} term', kind="term", category="c")
ENTITY = Concept.make("Battle of Coral Sea", kind="entity", category="c")


def test_every_pool_holds_three_phrasings_and_the_slot_once():
    assert set(BASIC) < set(PROPERTIES)
    for name, forms in POOLS.items():
        assert forms.keys() == ({"term", "entity"} if name in BASIC else {"term"})
        for pool in forms.values():
            assert len(set(pool)) == len(pool) >= 3
            assert all(text.count("{concept}") == 1 and text[-1] in ".?" for text in pool)
    everything = [text for forms in POOLS.values() for pool in forms.values() for text in pool]
    assert len(set(everything)) == len(everything)


def test_the_span_holds_the_concept_whatever_it_is():
    for prompt in make_prompts([TERM, ENTITY], properties=PROPERTIES[:4], per_property=5):
        start, end = prompt.span
        assert prompt.text[start:end] == prompt.concept
        assert (
            prompt.text[:start] + "{concept}" + prompt.text[end:] == POOLS[prompt.property][prompt.kind][prompt.variant]
        )


def test_draws_depend_on_seed_concept_and_property_alone():
    alone = make_prompts([ENTITY], properties=["place", "date"], per_property=2, seed=3)
    among = make_prompts([TERM, ENTITY], properties=["date", "meaning", "place"], per_property=2, seed=3)
    assert {prompt.id for prompt in alone} <= {prompt.id for prompt in among}
    assert len({prompt.id for prompt in among}) == len(among) == 12
    drawn = {tuple(p.variant for p in make_prompts([ENTITY], per_property=1, seed=seed)) for seed in range(30)}
    assert len(drawn) > 10


def test_variants_are_drawn_evenly():
    concepts = [Concept.make(f"c{i}", kind="term", category="") for i in range(2000)]
    counts = [0] * 5
    for prompt in make_prompts(concepts, properties=["meaning"]):
        counts[prompt.variant] += 1
    assert min(counts) > 330 and max(counts) < 470  # 400 each; three standard deviations are 54


def test_entities_are_not_asked_for_what_terms_have():
    prompts = make_prompts([TERM, ENTITY], properties=["meaning", "etymology"])
    assert [(p.kind, p.property) for p in prompts] == [
        ("term", "meaning"),
        ("term", "etymology"),
        ("entity", "meaning"),
    ]
    with pytest.raises(InputError, match="nothing can be asked about 'Battle of Coral Sea'"):
        make_prompts([ENTITY], properties=["etymology"])


@pytest.mark.parametrize(
    "options", [{"properties": ["colour"]}, {"properties": []}, {"per_property": 6}, {"per_property": 0},
                {"properties": ["date", "date"]}]
)  # fmt: skip
def test_wrong_requests(options):
    with pytest.raises(InputError):
        make_prompts([TERM], **options)


def test_pools_of_ones_own(tmp_path):
    pools = {"colour": {"term": ["Which colour has {concept}?"]}}
    (tmp_path / "p.json").write_text(json.dumps(pools))
    [prompt] = make_prompts([TERM], properties=["colour"], pools=load_pools(tmp_path / "p.json"))
    assert prompt.text == f"Which colour has {TERM.concept}?"
    for bad in ({}, {"a": []}, {"a": {"thing": ["{concept}"]}}, {"a": {"term": ["no slot"]}}, {"a": {"term": []}}):
        (tmp_path / "p.json").write_text(json.dumps(bad))
        with pytest.raises(DataError, match=re.escape(str(tmp_path))):
            load_pools(tmp_path / "p.json")


def test_prompts_come_back_as_they_were(tmp_path):
    prompts = make_prompts([TERM, ENTITY])
    save_prompts(prompts, tmp_path / "p.jsonl")
    assert load_prompts(tmp_path / "p.jsonl") == prompts
    row = prompts[0].to_dict()
    (tmp_path / "p.jsonl").write_text(json.dumps({**row, "span": [0, 1]}))
    with pytest.raises(DataError, match="misses the concept"):
        load_prompts(tmp_path / "p.jsonl")
