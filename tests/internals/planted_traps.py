"""A hand-weighted model that follows a shortcut against a constraint, and traps on it whose verdict is known.

One head of the last layer copies what the constraint's token says into the direction that the answers are read from,
another what the shortcut's token says. A head of the first layer adds a little of the context to what a constraint's
token says, so that a patch from another prompt is never quite without effect.
"""

from __future__ import annotations

import numpy as np
import torch

from latentkt.internals import LensRun
from latentkt.models import encode, encode_answers, handle_from_hf, make_pair
from tests.models.tiny import tiny_model, tiny_tokenizer

CONST, MARK, SAYS, OUT, CUE, PULL, CONTEXT = range(7)
CONSTRAINT_HEAD, SHORTCUT_HEAD = 2, 3
# family: (item's token, control's token, what they say, shortcut's token, its pull), and the verdict
FAMILIES = {
    "strong": ("+", "=", 1.6, "!", -0.4, ("solved", "read and decisive")),
    "weak": ("*", "/", 0.4, "?", -1.6, ("shortcut followed", "read but outweighed")),
    "silent": ("&", "%", 0.0, "?", -1.6, ("shortcut followed", "unread")),
}


def trap_handle(*, constraint: bool = True, shortcut: bool = True):
    tokenizer = tiny_tokenizer()
    model = tiny_model(
        "llama", num_hidden_layers=2, rope_theta=1e12, rope_parameters={"rope_type": "default", "rope_theta": 1e12}
    )
    token = {text: tokenizer(text, add_special_tokens=False)["input_ids"][0] for text in "+=*/&%!?0123456789"}
    correct, other = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in (" is", " a"))
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.8, 1.2, generator=torch.Generator().manual_seed(len(name)))
        embed = model.model.embed_tokens.weight
        embed[:, 8:].normal_(0.0, 0.2, generator=draw)
        embed[:, CONST] = 1.0
        for digit in "0123456789":
            embed[token[digit], CONTEXT] = float(torch.randn((), generator=draw))
        for item, control, says, cue, pull, _ in FAMILIES.values():
            embed[[token[item], token[control]], MARK] = 1.0
            embed[token[item], SAYS], embed[token[control], SAYS] = says, -says
            embed[token[cue], CUE], embed[token[cue], PULL] = 1.0, pull
        first, last = (layer.self_attn for layer in model.model.layers)
        gains = [layer.input_layernorm.weight for layer in model.model.layers]
        first.v_proj.weight[0, CONTEXT] = 1.0 / gains[0][CONTEXT]
        first.o_proj.weight[SAYS, 0] = 0.3
        for head, slow, mark, says in ((CONSTRAINT_HEAD, 3, MARK, SAYS), (SHORTCUT_HEAD, 2, CUE, PULL)):
            last.q_proj.weight[head * 8 + slow, CONST] = 9.0 / gains[1][CONST]
            last.k_proj.weight[8 + slow, mark] = 9.0 / gains[1][mark]
            last.v_proj.weight[8 + head, says] = 1.0 / gains[1][says]
        if constraint:
            last.o_proj.weight[OUT, CONSTRAINT_HEAD * 8 + CONSTRAINT_HEAD] = 1.0
        if shortcut:
            last.o_proj.weight[OUT, SHORTCUT_HEAD * 8 + SHORTCUT_HEAD] = 1.0
        model.lm_head.weight[correct, OUT], model.lm_head.weight[other, OUT] = 2.0, -2.0
    return handle_from_hf(model, tokenizer, name="planted traps")


def traps(handle, *, per_family: int = 6, seed: int = 0):
    """Runs by (item, which, order), and the pairs of both directions."""
    rng = np.random.default_rng(seed)
    runs, pairs = {}, []
    for family, (item_token, control_token, _, cue, _, _) in FAMILIES.items():
        for number in range(per_family):
            digits = "".join(rng.choice(list("0123456789"), 10))
            for order, start in (("correct_first", "1"), ("shortcut_first", "2")):
                names = {"item": f"{family}-{number}", "family": family, "kind": "action", "order": order}
                about = {**names, "polarity": "none", "template": "plain"}
                for which, token, right in (("item", item_token, "correct"), ("control", control_token, "shortcut")):
                    text = f"{start}{digits[:5]}{cue}{digits[5:]}{token}\na:"
                    spans = {"shortcut": [(6, 7)], "constraint": [(12, 13)]}
                    prompt = encode(handle, text, chat=False, spans=spans)
                    answers = encode_answers(handle, prompt, " is", " a")
                    meta = {**about, "which": which, "right": right, "first_option_is_correct": None}
                    runs[names["item"], which, order] = LensRun(prompt, answers, meta)
                for direction, base, source in (
                    ("control_to_item", "item", "control"), ("item_to_control", "control", "item")
                ):  # fmt: skip
                    ours, theirs = (runs[names["item"], which, order] for which in (base, source))
                    columns = {**about, "direction": direction, "base": base, "source": source}
                    columns |= {"base_right": ours.meta["right"], "source_right": theirs.meta["right"]}
                    name = f"{names['item']} {order} {direction}"
                    options = {"correct": " is", "shortcut": " a", "name": name, "meta": columns}
                    pairs.append(make_pair(handle, ours.prompt, theirs.prompt, **options))
    return runs, pairs
