from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa import TrapItem
from latentkt.trapqa.build.everyday.bank import Bank
from latentkt.trapqa.build.everyday.compose import Recipe, compose, recipes, trimmed
from latentkt.trapqa.build.everyday.families import ASPECTS, FAMILIES, families, read_marked, read_scene
from latentkt.trapqa.build.everyday.perturb import perturbed
from latentkt.trapqa.build.everyday.proof import prove
from latentkt.trapqa.build.everyday.seeds import Seed, choose_seeds, load_seeds
from latentkt.trapqa.build.everyday.stages import make_associations
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.rendering import render


@pytest.fixture(scope="module")
def seeded(strengths: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bank, list[Seed]]:
    out = tmp_path_factory.mktemp("bank") / "seeds.jsonl"
    make_associations(strengths, out=out, use="builtin")
    return load_seeds(out)


@pytest.fixture(scope="module")
def made(seeded: tuple[Bank, list[Seed]]) -> list[Recipe]:
    bank, seeds = seeded
    rng = np.random.default_rng(0)
    return [
        recipe
        for family in families()
        for recipe in recipes(
            family, family.scenes, [s for s in seeds if s.family == family.name], bank, rng, StageLog()
        )
    ]


@pytest.fixture(scope="module")
def items(made: list[Recipe], seeded: tuple[Bank, list[Seed]]) -> list[TrapItem]:
    return [compose(recipe, seeded[0], source="a test") for recipe in made]


def changed(item: TrapItem, **fields: Any) -> TrapItem:
    return replace(item, **fields)


def rules(items: list[TrapItem], bank: Bank) -> dict[str, str]:
    log = StageLog()
    prove(items, bank, log)
    return {removal.name: removal.rule for removal in log}


def test_the_families_cover_all_aspects_with_many_frames() -> None:
    assert [family.name for family in families()] == list(FAMILIES)
    scenes = [scene for family in families() for scene in family.scenes]
    assert {scene.aspect for scene in scenes} == set(ASPECTS)
    for family in families():
        assert len(family.scenes) >= 13
        assert len({scene.need for scene in family.scenes}) == len(family.scenes)
        assert len({scene.aspect for scene in family.scenes}) >= 6
    asks = Counter(scene.ask for scene in scenes)
    assert max(asks.values()) == 1


def test_every_scene_gives_two_mirror_images(items: list[TrapItem], made: list[Recipe]) -> None:
    assert len(items) == 2 * len({(recipe.family.name, recipe.scene.id) for recipe in made}) > 200
    by_id = {item.id: item for item in items}
    for item in items:
        mirror = by_id[item.meta["mirror"]]
        assert (mirror.correct, mirror.shortcut) == (item.shortcut, item.correct)
        start, end = item.spans["constraint"][0]
        other_start, other_end = mirror.control.spans["constraint"][0]
        assert item.text[start:end] == mirror.control.text[other_start:other_end]


def test_cue_and_constraint_change_places_in_half_of_the_scenes(items: list[TrapItem]) -> None:
    first = [item.spans["constraint"][0] > item.spans["shortcut"][0] for item in items]
    assert abs(sum(first) - len(first) / 2) <= 8
    assert all((item.meta["order"] == "cue_first") == cue_first for item, cue_first in zip(items, first, strict=True))


def test_every_item_holds_every_rule(items: list[TrapItem], seeded: tuple[Bank, list[Seed]]) -> None:
    assert rules(items, seeded[0]) == {}


def test_every_rule_can_fail_and_takes_the_mirror_image_along(
    items: list[TrapItem], seeded: tuple[Bank, list[Seed]]
) -> None:
    bank = seeded[0]
    item = next(item for item in items if item.id == "tool_required-plank-a")
    rest = [other for other in items if other is not item]

    def broken(**fields: Any) -> dict[str, str]:
        return rules([changed(item, **fields), *rest], bank)

    named = item.text.replace("Today I have", "With a hammer I have")
    assert broken(text=named)[item.id] == "the text holds a word of one answer"
    fallen = broken(text=item.text.replace("Today I", "Today  I"))
    assert fallen == {
        item.id: "grammar",
        item.meta["mirror"]: "its mirror image or level was removed",
    }
    assert broken(text=item.text + " Or not?")[item.id] == "grammar"
    assert broken(correct=replace(item.correct, text="get the glue with an extra strong grip"))[item.id] == "lengths"
    assert broken(shortcut=replace(item.shortcut, text="get the other"))[item.id] == "the association is not there"
    strong = Bank((*bank.associations, replace(bank.associations[0], cue="teapot", response="glue", count=90, n=100)))
    assert rules(items, strong)[item.id] == "the constraint pulls harder than the cue"
    meta = {**item.meta, "scene": "copy", "mirror": "none"}
    assert rules([*items, changed(item, id="copy", meta=meta)], bank)["copy"] == "twin of another item"


def test_a_sentence_may_stand_in_three_items(items: list[TrapItem], seeded: tuple[Bank, list[Seed]]) -> None:
    said = "It is nine on a cold gray day. "
    repeated = [
        changed(item, text=said + item.text, control=replace(item.control, text=said + item.control.text))
        for item in items[:8:2]
    ]
    moved = [changed(item, spans={role: tuple((a + len(said), b + len(said)) for a, b in spans)
                                  for role, spans in item.spans.items()}) for item in repeated]  # fmt: skip
    assert rules(moved, seeded[0]) == {items[6].id: "a sentence in too many items"}
    assert rules(moved[:3], seeded[0]) == {}


def test_a_response_is_capped(items: list[TrapItem], seeded: tuple[Bank, list[Seed]]) -> None:
    log = StageLog()
    kept = prove(items, seeded[0], log, per_response=1)
    scenes = Counter((i.family, i.meta["association"]["response"]) for i in kept)
    assert max(scenes.values()) == 1 and "cap of its response" in {removal.rule for removal in log}


def test_items_say_what_they_were_made_of(items: list[TrapItem]) -> None:
    item = next(item for item in items if item.id == "tool_required-plank-a")
    assert item.meta["association"] == {"cue": "nail", "response": "hammer", "strength": 0.2, "n": 200}
    assert item.paths is not None and item.paths.shortcut == ("nail", "hammer") and item.paths.correct[1] == "glue"
    assert item.shortcut.text == "get the hammer" and "40 of 200 people" in item.source[0]
    assert {"role", "constraint", "right_shape", "shortcut_shape"} <= set(item.meta)
    start, end = item.spans["shortcut"][0]
    assert item.text[start:end] == "A jar of nails stands on the bench"


def test_trimming_leaves_what_differs() -> None:
    assert trimmed("my brakes work", "my tires work") == ("my ", "brakes", "tires", " work")
    assert trimmed("a b", "a b c") == ("a ", "b", "b c", "")
    assert trimmed("red", "green") == ("", "red", "green", "")


def test_perturbations_change_what_they_say_and_nothing_else(
    made: list[Recipe], seeded: tuple[Bank, list[Seed]]
) -> None:
    bank = seeded[0]
    rng = np.random.default_rng(1)
    all_of_them = perturbed(made, ("names", "distances", "order", "levels"), rng)
    items = {compose(r, bank, source="t").id: compose(r, bank, source="t") for r in all_of_them}
    base, other = items["vehicle_required-brakes-a-0"], items["vehicle_required-brakes-a-distances"]
    assert base.text.replace("two hundred steps", "#") == _without(other.text, base.text, "two hundred steps")
    named = [item for item in items.values() if item.meta["change"] == "names"]
    assert len(named) >= 10
    for item in named:
        twin = items[item.meta["mirror"] + "-names"]
        assert (twin.correct.text, twin.shortcut.text) == (item.shortcut.text, item.correct.text)
    turned = items["tool_required-plank-a-order"]
    assert turned.meta["order"] != items["tool_required-plank-a-0"].meta["order"]
    assert sorted(turned.text) == sorted(items["tool_required-plank-a-0"].text)
    assert rules(list(items.values()), bank) == {}
    with pytest.raises(InputError, match="unknown perturbation"):
        perturbed(made, ("colors",), rng)  # type: ignore[arg-type]


def _without(text: str, base: str, own: str) -> str:
    """The text with what stands in the place of `own` as #."""
    head, tail = base.split(own)
    assert text.startswith(head) and text.endswith(tail)
    return head + "#" + tail


def test_levels_grow_more_explicit_and_keep_their_answer(made: list[Recipe], seeded: tuple[Bank, list[Seed]]) -> None:
    bank = seeded[0]
    recipe = next(r for r in made if r.base == "tool_required-plank-a")
    levels = [compose(r, bank, source="t") for r in perturbed([recipe], ("levels",), np.random.default_rng(0))]
    assert [item.level for item in levels] == [0, 1, 2, 3]
    assert len({(item.group, item.correct.text) for item in levels}) == 1
    assert [len(item.spans["constraint"]) for item in levels] == [1, 1, 2, 3]
    assert "Planks can bear a blow" in levels[1].text and "Planks can bear a blow" in levels[1].control.text
    assert "stuck on" in levels[2].text and "struck home" in levels[2].control.text
    assert len(levels[0].text) < len(levels[2].text) < len(levels[3].text)
    assert sum(bool(scene.levels) for family in families() for scene in family.scenes) >= 10


def test_every_item_is_rendered_in_both_orders(items: list[TrapItem]) -> None:
    for item in items[::9]:
        texts = {render(item, order=order, template="plain").text for order in ("correct_first", "shortcut_first")}
        assert len(texts) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"for_a": ""}, "missing"),
        ({"color": "red"}, "unknown"),
        ({"aspect": "war"}, "aspect"),
        ({"kind": "odd"}, "kind"),
        ({"need": "Nothing here."}, "need"),
        ({"cue_a": "No marks here."}, "lacks a mark"),
        ({"a": "take [the] *car*"}, "lacks a mark"),
        ({"rule": "One rule."}, "missing"),
        ({"for_a": "*two* *stars*"}, "too many marks"),
    ],
)
def test_a_scene_is_checked(change: dict[str, str], message: str) -> None:
    record = {
        "id": "x", "aspect": "transport", "kind": "physical", "a": "take the *car*", "b": "go on *foot*",
        "cue_a": "[My *garage* is warm].", "cue_b": "[My *shoes* are light].", "need": "I need {which}.",
        "for_a": "a *load* moved", "for_b": "a *walk* taken", "ask": "Do I {option_a} or {option_b}?", "why": "So.",
    }  # fmt: skip
    assert read_scene(record, where="here").option["a"].word == "car"
    with pytest.raises(DataError, match=message):
        read_scene({**record, **change}, where="here")
    assert read_marked("plain", where="here").span is None


def test_scenes_without_their_association_give_no_item(seeded: tuple[Bank, list[Seed]]) -> None:
    bank, seeds = seeded
    family = families()[3]
    log = StageLog()
    some = [s for s in seeds if s.family == family.name and s.association.cue != "nail"]
    found = recipes(family, family.scenes, some, bank, np.random.default_rng(0), log)
    assert "tool_required-plank-a" not in {recipe.base for recipe in found}
    assert {r.name: (r.rule, r.detail) for r in log} == {
        "tool_required-plank": ("no seed of that association", "nail -> hammer")
    }
    log = StageLog()
    mine = [s for s in choose_seeds(bank, [family], StageLog())]
    twice = (family.scenes[0], replace(family.scenes[0], id="again"))
    assert len(recipes(family, twice, mine, bank, np.random.default_rng(0), log)) == 2
    assert [r.rule for r in log] == ["association of another scene"]
