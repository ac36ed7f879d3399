"""Items to break, and tokenizers whose chat templates are of the sorts that exist."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from latentkt.trapqa import load_items

SMALL = Path(__file__).parent / "data" / "small.jsonl"

_TURNS = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
TEMPLATES = {
    # A default system prompt, as SmolLM2 and Qwen2.5 have one.
    "default": ("{% if messages[0]['role'] != 'system' %}<|system|>\nYou help.<|end|>\n{% endif %}" + _TURNS),
    # System prompts are taken, none is written by default.
    "open": _TURNS,
    # No system role, and the content is trimmed, as in Gemma's.
    "no_system": (
        "<bos>{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "<turn>{{ m['role'] }}\n{{ m['content'] | trim }}</turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<turn>model\n{% endif %}"
    ),
    # The system prompt stands inside the user's turn, and no cue is ever added, as in Llama-2's.
    "inline": (
        "{% if messages[0]['role'] == 'system' %}{% set s = '<<SYS>>' + messages[0]['content'] + '<</SYS>>\n' %}"
        "{% else %}{% set s = '' %}{% endif %}"
        "{% for m in messages %}{% if m['role'] == 'user' %}<s>[INST] {{ s + m['content'] }} [/INST]{% endif %}"
        "{% endfor %}"
    ),
    # Fixed words before the system prompt, as in Llama-3's; an empty one is written without words.
    "preamble": (
        "<|system|>\nKnowledge until 2023.\n{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}"
        "{% endif %}<|end|>\n{% for m in messages if m['role'] != 'system' %}"
        "<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    ),
}


@pytest.fixture
def small_path() -> Path:
    return SMALL


@pytest.fixture(scope="session")
def small():
    return load_items(SMALL)


@pytest.fixture
def records() -> dict[str, dict]:
    """The items of the small set as JSON objects, by id; free to break."""
    lines = SMALL.read_text(encoding="utf-8").splitlines()
    return {record["id"]: copy.deepcopy(record) for record in map(json.loads, lines)}


@pytest.fixture(scope="session")
def make_tokenizer():
    """A Hugging Face tokenizer with a given chat template (or one of `TEMPLATES`, by name)."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    def make(template: str | None):
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"?": 0}, unk_token="?")))
        tokenizer.chat_template = TEMPLATES.get(template, template) if template else None
        return tokenizer

    return make


@pytest.fixture(scope="session", params=sorted(TEMPLATES))
def tokenizer(request, make_tokenizer):
    return make_tokenizer(request.param)
