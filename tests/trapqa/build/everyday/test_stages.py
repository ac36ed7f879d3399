from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from latentkt.cli import main
from latentkt.errors import InputError
from latentkt.trapqa import load_items
from latentkt.trapqa.build import (
    Cleaning,
    ScenarioOptions,
    SeedLimits,
    StageLog,
    artefact_tests,
    make_associations,
    make_scenarios,
)
from latentkt.trapqa.build.everyday.families import FAMILIES, families


@pytest.fixture(scope="module")
def bank(strengths: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stages") / "seeds.jsonl"
    lines = make_associations(strengths, out=out, use="builtin", licence="none")
    assert lines[-1].startswith("associations:")
    return out


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_both_stages_give_a_checked_set_with_all_that_belongs_to_it(bank: Path, tmp_path: Path) -> None:
    made = make_scenarios(bank, ScenarioOptions(seed=3), out=tmp_path / "scenes.jsonl")
    items = load_items(made.written.items)
    assert len(items) > 200 and made.tests.passed
    assert set(Counter(item.family for item in items)) == set(FAMILIES)
    assert items.patterns is not None and all(item.paths is not None for item in items)
    assert sorted(content(tmp_path)) == [
        "scenes.card.md", "scenes.construction.json", "scenes.jsonl", "scenes.patterns.json", "scenes.removed.jsonl",
    ]  # fmt: skip
    card = made.written.card.read_text()
    assert "strength.csv" in card and "built-in endings" in card and "Passed" in card
    rules = {removal.rule for removal in StageLog.load(made.written.removed)}
    assert {"generic response", "too few people", "response is the cue"} <= rules


def test_the_same_seed_gives_the_same_files_and_another_seed_does_not(bank: Path, tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        options = ScenarioOptions(seed=seed, limit=32, perturb=("names", "distances", "levels", "order"))
        make_scenarios(bank, options, out=tmp_path / name / "scenes.jsonl")
    assert content(tmp_path / "one") == content(tmp_path / "two") != content(tmp_path / "three")


def test_a_limit_takes_whole_scenes_of_all_families_in_turn(bank: Path, tmp_path: Path) -> None:
    made = make_scenarios(bank, ScenarioOptions(limit=32), out=tmp_path / "scenes.jsonl")
    items = load_items(made.written.items)
    assert len(items) == 32 and set(Counter(item.family for item in items).values()) == {4}
    mirrors = {item.meta["mirror"] for item in items}
    assert mirrors == {item.id for item in items}


def test_outputs_do_not_overwrite_their_inputs(bank: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a name of its own"):
        make_scenarios(bank, ScenarioOptions(), out=bank)
    with pytest.raises(InputError, match="ending in"):
        make_scenarios(bank, ScenarioOptions(), out=tmp_path / "scenes.json")


def test_a_file_without_any_scene_is_refused_with_the_counts(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    file.write_text("cue\tresponse\tR1\tN\nnail\thammer\t60\t100\n")
    make_associations(file, out=tmp_path / "seeds.jsonl", use="builtin")
    with pytest.raises(InputError, match="no item is left"):
        make_scenarios(tmp_path / "seeds.jsonl", ScenarioOptions(), out=tmp_path / "scenes.jsonl")


def test_the_commands(strengths: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds, out = str(tmp_path / "seeds.jsonl"), str(tmp_path / "scenes.jsonl")
    assert main(["trapqa", "associations", str(strengths), "--out", seeds, "--words", "builtin"]) == 0
    assert "seeds by family: vehicle_required" in capsys.readouterr().out
    assert main(["trapqa", "scenarios", seeds, "--out", out, "--seed", "5", "--limit", "80"]) == 0
    shown = capsys.readouterr().out
    assert "artefact tests: passed" in shown and "(80)" in shown
    assert main(["items", "check", out]) == 0
    assert "80 items, all valid" in capsys.readouterr().out
    assert main(["trapqa", "scenarios", str(strengths), "--out", out]) == 2


DRAFT = {
    "aspect": "home repair", "kind": "physical", "a": "call the *plumber*", "b": "use the *hammer*",
    "cue_a": "[The *leak* is small].", "cue_b": "[My *nail* box is full].", "need": "Today I must see to {which}.",
    "for_a": "a dripping *tap*", "for_b": "a loose *board*", "ask": "To be done, do I {option_a} or {option_b}?",
    "why": "Taps are not struck.",
}  # fmt: skip


def replies(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[str]:
    """A model whose replies are made by `answer(prompt)`; returns what it was asked."""
    pytest.importorskip("inspect_ai")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    asked: list[str] = []

    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        asked.append(messages[0].text)
        output = ModelOutput.from_content("mockllm", answer(messages[0].text))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    monkeypatch.setattr("inspect_ai.model.get_model", lambda *_: model)
    return asked


def words_of(prompt: str) -> dict[str, str]:
    """What a prompt for a scene asks for."""
    line = prompt.split("Option a has to contain the word ")[1]
    quoted = line.replace("\n", " ").split('"')
    return {"response_a": quoted[1], "response_b": quoted[3], "cue_a": quoted[5], "cue_b": quoted[9]}


def drafted(prompt: str) -> str:
    asked = words_of(prompt)
    draft = {
        **DRAFT,
        "a": f"find the *{asked['response_a']}*",
        "b": f"find the *{asked['response_b']}*",
        "cue_a": f"[Some *{asked['cue_a']}* is here].",
        "cue_b": f"[Some *{asked['cue_b']}* is there].",
        "need": f"Case {crc32(prompt.encode()) % 1000} is about {{which}}.",
        "ask": f"In case {sorted(asked.values())[0]}, do I {{option_a}} or {{option_b}}?",
    }
    return json.dumps(draft)


def spare(tmp_path: Path) -> Path:
    """A bank with seeds that no written scene uses."""
    lines = ["cue\tresponse\tR1\tN"]
    for n, (cue, response) in enumerate(
        [
            ("anvil", "hammer"),
            ("jelly", "spoon"),
            ("syrup", "fork"),
            ("gravel", "rake"),
            ("suds", "mop"),
            ("elbow", "wrench"),
        ]
    ):
        lines.append(f"{cue}\t{response}\t{40 + n}\t100")
    (tmp_path / "spare.csv").write_text("\n".join(lines) + "\n")
    make_associations(tmp_path / "spare.csv", out=tmp_path / "seeds.jsonl", use="builtin")
    return tmp_path / "seeds.jsonl"


def test_a_model_writes_scenes_and_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = spare(tmp_path)
    asked = replies(monkeypatch, drafted)
    options = ScenarioOptions(model="mockllm/model", per_family=2)
    made = make_scenarios(seeds, options, out=tmp_path / "scenes.jsonl")
    items = load_items(made.written.items)
    assert all("model-" in item.meta["scene"] and "written by mockllm/model" in item.source[1] for item in items)
    assert len(items) >= 2
    before = len(asked)
    again = make_scenarios(seeds, options, out=tmp_path / "scenes.jsonl")
    assert len(asked) == before, "answers are looked up"
    assert again.written.items.read_bytes() == made.written.items.read_bytes()


def test_prose_and_wrong_scenes_of_a_model_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = spare(tmp_path)
    turns = iter(["Gladly! Here is a scene.", json.dumps(DRAFT), json.dumps({**DRAFT, "kind": "odd"})])

    def answer(prompt: str) -> str:
        return next(turns, None) or drafted(prompt)

    replies(monkeypatch, answer)
    options = ScenarioOptions(model="mockllm/model", per_family=3, retries=0)
    with pytest.raises(InputError, match="model: prose 1"):
        make_scenarios(seeds, options, out=tmp_path / "scenes.jsonl")
    kept = StageLog.load(tmp_path / "scenes.removed.jsonl")
    found = Counter(r.rule for r in kept if r.stage == "scenes of the model")
    assert found == {"model: prose": 1, "no scene": 2}


def test_a_second_opinion_removes_what_it_would_not_answer(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opinion is right about every text but those of two scenes; of one other it says nothing that can be read."""
    plain = make_scenarios(bank, ScenarioOptions(limit=32), out=tmp_path / "plain.jsonl")
    known: dict[str, str] = {}
    items = load_items(plain.written.items).items
    for item in items:
        for which in ("item", "control"):
            right = item.correct.text if which == "item" else item.shortcut.text
            for pair in ((item.correct.text, item.shortcut.text), (item.shortcut.text, item.correct.text)):
                text = item.question(which)[0].replace("{option_a}", pair[0]).replace("{option_b}", pair[1])
                known[text] = "first" if pair[0] == right else "second"
    doubted, silent = items[0], items[2]

    def answer(prompt: str) -> str:
        text = next(each for each in known if each in prompt)
        if silent.text.split("{")[0] in prompt:
            return "I would rather not say."
        leaves = "both" if doubted.text.split("{")[0] in prompt else known[text]
        opinion = {"decides_for": leaves, "plausible": True, "well_formed": True, "needs_expert": False, "reason": "so"}
        return json.dumps(opinion)

    replies(monkeypatch, answer)
    options = ScenarioOptions(limit=32, checker="mockllm/model", retries=0)
    made = make_scenarios(bank, options, out=tmp_path / "scenes.jsonl")
    removed = {r.name: r.rule for r in StageLog.load(made.written.removed) if r.stage == "second opinion"}
    assert removed == {
        doubted.id: "model: the scene leaves both",
        doubted.meta["mirror"]: "its mirror image or level was removed",
        silent.id: "model: prose",
        silent.meta["mirror"]: "its mirror image or level was removed",
    }
    assert made.written.n_items == 28


def test_from_the_association_file(data_dir: Path, tmp_path: Path) -> None:
    """At least 200 items of all families that pass every rule and every artefact test."""
    file = data_dir / "associations" / "usf_as_swow_strength.R1.tsv"
    make_associations(file, out=tmp_path / "seeds.jsonl", use="builtin")
    made = make_scenarios(tmp_path / "seeds.jsonl", ScenarioOptions(), out=tmp_path / "scenes.jsonl")
    items = load_items(made.written.items).items
    assert len(items) >= 200 and made.tests.passed
    assert min(Counter(item.family for item in items).values()) >= 20
    assert all(item.meta["association"]["strength"] >= 0.08 for item in items)
    assert artefact_tests(items, seed=1).passed


@pytest.mark.slow
@pytest.mark.smollm2
def test_pairs_have_equally_many_tokens(bank: Path, tmp_path: Path) -> None:
    from latentkt.models import open_model

    made = make_scenarios(bank, ScenarioOptions(), out=tmp_path / "scenes.jsonl")
    tokenizer = open_model("smollm2").tokenizer
    for item in load_items(made.written.items):
        lengths = [
            len(
                tokenizer(
                    text.replace("{option_a}", item.correct.text).replace("{option_b}", item.shortcut.text)
                ).input_ids
            )
            for text in (item.text, item.control.text)
        ]
        assert lengths[0] == lengths[1], item.id


@pytest.mark.parametrize("options", [{"limit": -4}, {"limit": 1}, {"per_response": 0}, {"seed": -1}])
def test_bounds_that_mean_nothing_are_refused(bank: Path, tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="bad "):
        make_scenarios(bank, ScenarioOptions(**options), out=tmp_path / "x.jsonl")


@pytest.mark.parametrize("strength", [float("nan"), -1.0, 0.0, 1.5])
def test_a_least_strength_is_a_share(strength: float) -> None:
    with pytest.raises(InputError, match="limits of the seeds"):
        SeedLimits(min_strength=strength)


def test_limits_of_cleaning_are_in_order() -> None:
    with pytest.raises(InputError, match="limits of cleaning"):
        Cleaning(high_zipf=1, low_zipf=9)


def test_scenes_are_counted_as_scenes(bank: Path, tmp_path: Path) -> None:
    lines = bank.read_text().splitlines()
    cut = tmp_path / "seeds.jsonl"
    cut.write_text("\n".join(line for line in lines if '"cue": "nail"' not in line) + "\n")
    table = {row["stage"]: row for row in make_scenarios(cut, ScenarioOptions(), out=tmp_path / "x.jsonl").log.table()}
    written = sum(len(family.scenes) for family in families())
    assert table["scenes"]["removed"] >= 1 and table["scenes"]["given"] == written
    assert table["format"]["given"] == 2 * table["scenes"]["kept"]
