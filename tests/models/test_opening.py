"""Opening a model proves that it is read rightly: each family passes, and each broken one is refused with numbers."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch
from tokenizers import processors

from latentkt.errors import ModelRefusedError
from latentkt.models import handle_from_hf, open_model
from latentkt.models.opening import check_reading
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of tiny models, one a family, written when first asked for."""

    @functools.cache
    def make(family: str):
        path = tmp_path_factory.mktemp(family)
        tiny_model(family).save_pretrained(path)
        tiny_tokenizer(bos=family in {"llama", "gemma2"}).save_pretrained(path)
        return path

    return make


def break_forward(monkeypatch, module, change):
    """Let every module of this class give `change(output, first argument)`; the signature stays."""
    kind = type(module)
    original = kind.forward

    @functools.wraps(original)
    def forward(self, *args, **kwargs):
        output = original(self, *args, **kwargs)
        first = args[0] if args else next(iter(kwargs.values()))
        if isinstance(output, tuple):
            return (change(output[0], first), *output[1:])
        return change(output, first)

    monkeypatch.setattr(kind, "forward", forward)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_of_each_family_opens(folder, family):
    handle = open_model(folder(family))
    assert all(finding.passed for finding in handle.report.findings)
    assert max(finding.value for finding in handle.report.findings) < 1e-5
    assert handle.dtype == torch.float32
    assert handle.attn_implementation == "eager"


@pytest.mark.parametrize("family", MORE_FAMILIES)
def test_more_families_open(family):
    assert all(finding.passed for finding in tiny_handle(family).report.findings)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in {"gemma2", "bloom"}])
def test_sdpa_is_read_as_well(family):
    handle = tiny_handle(family, attn="sdpa")
    assert handle.attn_implementation == "sdpa"
    ids = torch.arange(8, 40)[None]
    assert (handle.logits(ids) - tiny_handle(family).logits(ids)).abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("which", ["attn_norm", "mlp_norm", "final"])
def test_a_norm_that_is_not_what_its_weight_says_is_refused(folder, family, which, monkeypatch):
    path = folder(family)
    arch = tiny_handle(family).arch
    norm = arch.final_norm if which == "final" else arch.part(1, getattr(arch.family, which))
    broken = {n for n, module in arch.decoder.named_modules() if module is norm}
    original = type(norm).forward

    @functools.wraps(original)
    def forward(self, x):
        return original(self, x) * (1.01 if getattr(self, "broken", False) else 1.0)

    monkeypatch.setattr(type(norm), "forward", forward)
    handle = open_model(path, check=False)
    for name, module in handle.arch.decoder.named_modules():
        module.broken = name in broken
    with pytest.raises(ModelRefusedError, match=r"norms as read: 1\.0\de-02|norms as read: 9\.9\de-03"):
        check_reading(handle)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_that_lacks_a_norm_weight_is_refused(folder, family, tmp_path):
    from safetensors.torch import load_file, save_file

    handle = open_model(folder(family), check=False)
    norm = handle.arch.part(0, handle.arch.family.mlp_norm)
    name = next(n for n, module in handle.model.named_modules() if module is norm)
    for file in folder(family).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    key = next(k for k in weights if (name + ".weight").endswith(k) or k.endswith(name + ".weight"))
    del weights[key]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelRefusedError, match="missing_keys"):
        open_model(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_softcap_that_is_not_read_is_refused(folder, family, monkeypatch):
    handle = open_model(folder(family))
    original = type(handle.model).forward

    @functools.wraps(original)
    def capped(self, *args, **kwargs):
        output = original(self, *args, **kwargs)
        output.logits = 3.0 * torch.tanh(output.logits / 3.0)
        return output

    monkeypatch.setattr(type(handle.model), "forward", capped)
    with pytest.raises(ModelRefusedError, match="unembedding"):
        open_model(folder(family))


def test_the_softcap_of_gemma2_is_part_of_the_reading():
    handle = tiny_handle("gemma2")
    assert handle.arch.softcap == 5.0
    without = dataclasses.replace(handle, arch=dataclasses.replace(handle.arch, softcap=None))
    with pytest.raises(ModelRefusedError, match="unembedding"):
        check_reading(without)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_residual_that_is_not_added_up_is_refused(folder, family, monkeypatch):
    block = tiny_handle(family).arch.layers[0]
    break_forward(monkeypatch, block, lambda out, resid: out + 1e-3 * resid)
    with pytest.raises(ModelRefusedError, match="residual sums"):
        open_model(folder(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_contribution_read_before_its_post_norm_or_scale_is_refused(family, monkeypatch):
    """The block adds something else than what is read at `attn_out`."""
    handle = tiny_handle(family)
    wrong = dataclasses.replace(handle.arch.family, attn_added=handle.arch.family.attn_norm)
    with pytest.raises(ModelRefusedError, match="residual sums"):
        check_reading(dataclasses.replace(handle, arch=dataclasses.replace(handle.arch, family=wrong)))


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_that_moves_a_row_is_refused(folder, family, monkeypatch):
    kind = type(tiny_handle(family).model)
    original = kind.forward

    @functools.wraps(original)
    def forward(self, *args, attention_mask=None, position_ids=None, **kwargs):
        return original(self, *args, **kwargs)

    monkeypatch.setattr(kind, "forward", forward)
    with pytest.raises(ModelRefusedError, match="padding"):
        open_model(folder(family))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fault", ["twice", "announced but missing", "closes the text", "twice in chat"])
def test_a_broken_bos_rule_is_refused(family, fault, tmp_path):
    handle = tiny_handle(family)
    tokenizer = tiny_tokenizer(bos=fault == "twice in chat")
    special = [("<bos>", 1), ("<eos>", 2)]
    if fault == "twice":
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<bos> <bos> $A", special_tokens=special
        )
    elif fault == "closes the text":
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <eos>", special_tokens=special
        )
    elif fault == "twice in chat":
        tokenizer.chat_template = "{{ bos_token }}" + tokenizer.chat_template
    else:
        tokenizer.add_bos_token = True
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    with pytest.raises(ModelRefusedError, match=r"BOS|EOS"):
        handle_from_hf(handle.model, tokenizer, name="broken")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_half_precision_opens_and_gives_float32_logits(folder, family, dtype):
    handle = open_model(folder(family), dtype=dtype)
    assert str(handle.dtype) == f"torch.{dtype}"
    ids = torch.arange(8, 30)[None]
    assert handle.logits(ids).dtype == torch.float32
    assert handle.unembed(torch.randn(3, 32, dtype=handle.dtype)).dtype == torch.float32


def test_nan_weights_are_refused():
    model = tiny_model("llama")
    model.model.layers[1].mlp.up_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(ModelRefusedError, match="nan"):
        handle_from_hf(model, tiny_tokenizer(), name="nan")


def test_a_post_norm_opt_and_an_unknown_block_are_refused_with_the_reason():
    with pytest.raises(ModelRefusedError, match="do_layer_norm_before"):
        handle_from_hf(tiny_model("opt", do_layer_norm_before=False), tiny_tokenizer(), name="opt-350m")
    model = tiny_model("llama")
    for layer in model.model.layers:
        layer.mixer = layer.self_attn
        del layer.self_attn
    with pytest.raises(ModelRefusedError, match="mixer"):
        handle_from_hf(model, tiny_tokenizer(), name="unknown", check=False)


def test_other_ways_through_a_block_are_refused():
    with pytest.raises(ModelRefusedError, match="residual sums"):
        handle_from_hf(
            tiny_model("bloom", apply_residual_connection_post_layernorm=True), tiny_tokenizer(), name="bloom"
        )
    with pytest.raises(ModelRefusedError, match=r"never computed(.|\n)*attn_out.0"):
        handle_from_hf(tiny_model("bloom", pretraining_tp=2, slow_but_exact=True), tiny_tokenizer(), name="bloom")


def test_a_map_between_final_norm_and_unembedding_is_read():
    handle = handle_from_hf(tiny_model("opt", word_embed_proj_dim=16), tiny_tokenizer(), name="opt")
    assert handle.arch.project_out is not None


def test_a_template_that_raises_is_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ModelRefusedError, match="roles must alternate"):
        handle_from_hf(tiny_handle().model, tokenizer, name="template")


def test_a_slow_tokenizer_and_mixed_dtypes_are_refused():
    class Slow:
        is_fast = False

    with pytest.raises(ModelRefusedError, match="offsets"):
        handle_from_hf(tiny_model("llama"), Slow(), name="slow")
    model = tiny_model("llama")
    model.lm_head.half()
    with pytest.raises(ModelRefusedError, match=r"float16, torch.float32"):
        handle_from_hf(model, tiny_tokenizer(), name="mixed")


def test_the_card_fits_one_screen():
    card = tiny_handle("gemma2").report.card()
    assert len(card.splitlines()) < 24
    assert max(map(len, card.splitlines())) <= 120
    assert "post-norms" in card
    assert "softcap" in card
