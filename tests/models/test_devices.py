"""A device is held to the CPU's logits; what differs is refused, and the model is afterwards where it was."""

from __future__ import annotations

import copy
import ctypes
import platform
import subprocess
import sys

import pytest
import torch

from latentkt.errors import InputError, ModelRefusedError, RunError
from latentkt.models import handle_from_hf, open_model
from latentkt.models.devices import logits_of, naming_out_of_memory, prove_device, refuse_other_logits
from tests.models.tiny import tiny_handle, tiny_model, tiny_tokenizer


def handle_with(change):
    model = tiny_model("llama")
    change(model)
    return handle_from_hf(model, tiny_tokenizer(), name="changed")


def test_two_handles_on_the_same_weights_agree_and_others_are_refused():
    handle = tiny_handle("llama")
    here = logits_of(handle)
    refuse_other_logits(handle, here, logits_of(handle_with(lambda model: None)), device="mps")

    def turned(model):
        model.model.layers[1].self_attn.o_proj.weight.data.mul_(1.02)

    for there in (logits_of(handle_with(turned)), [torch.full_like(x, torch.nan) for x in here], [-x for x in here]):
        with pytest.raises(ModelRefusedError, match="other logits on mps than on the CPU") as caught:
            refuse_other_logits(handle, here, there, device="mps")
    assert "open it with device='cpu'" in str(caught.value)
    nearly = [x + 1e-5 for x in here]
    refuse_other_logits(handle, here, nearly, device="mps")


HELD = """
import ctypes, torch
from latentkt.models.devices import keep_freed_memory

NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()

class Told(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Told
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
BLOCK = 4 << 20  # bytes, as a layer's activations are
holes = [libc.malloc(BLOCK) for _ in range(20)]  # so that what follows comes from the top of the heap
blocks = (ctypes.c_void_p * 5)()

def held():  # bytes of freed memory at the top of the heap that were not handed back
    for i in range(5):
        blocks[i] = libc.malloc(BLOCK)
    for i in reversed(range(5)):
        libc.free(blocks[i])
    return libc.mallinfo2().keepcost

libc.free(libc.malloc(BLOCK + 4096))  # glibc has seen such a block freed
held()
plain = held()
keep_freed_memory()
print(plain, held())
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="only glibc (2.33 on) tells what it keeps",
)
def test_freed_memory_is_kept_and_not_handed_back():
    # Not by counting page faults: some kernels count none. Not by tensors: what else torch asks for may lie above them.
    ran = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    plain, kept = map(int, ran.stdout.split())
    assert plain < 9 << 20  # twice the largest block that it has seen, and a little
    assert kept >= 20 << 20  # all five blocks


class Elsewhere:
    """Stands in for a device: a model that is moved there computes something else."""

    def __init__(self, monkeypatch, handle, *, wrong):
        self.moves, model = [], handle.model
        head, to = model.lm_head.weight.data.clone(), model.to

        def moved(device):
            self.moves.append(str(device))
            model.lm_head.weight.data.copy_(head * (1 if str(device) == "cpu" or not wrong else -1))
            return to("cpu")

        monkeypatch.setattr(model, "to", moved)
        monkeypatch.setattr(type(handle), "device", property(lambda _: torch.device("mps")))
        monkeypatch.setattr(type(handle), "inputs", _inputs_on_cpu)
        moved("mps")


def _inputs_on_cpu(handle, ids, mask=None, *, positions=None):
    mask = torch.ones_like(ids)
    return {"input_ids": ids, "attention_mask": mask, "use_cache": False}


@pytest.mark.parametrize("wrong", [True, False])
def test_a_model_elsewhere_is_proved_against_its_own_cpu_run_and_goes_back(monkeypatch, wrong):
    model = tiny_model("llama")
    handle = handle_from_hf(copy.deepcopy(model), tiny_tokenizer(), name="moved")
    place = Elsewhere(monkeypatch, handle, wrong=wrong)
    if wrong:
        with pytest.raises(ModelRefusedError, match="other logits on mps"):
            prove_device(handle)
    else:
        prove_device(handle)
    assert place.moves == ["mps", "cpu", "mps"]


def test_a_model_on_mps_is_proved_whoever_opened_it(monkeypatch):
    from latentkt.models import load

    asked = []
    monkeypatch.setattr(load, "prove_device", asked.append)
    monkeypatch.setattr(load.ModelHandle, "device", property(lambda _: torch.device("mps")))
    handle_from_hf(tiny_model("llama"), tiny_tokenizer(), name="there", check=False)
    assert [handle.name for handle in asked] == ["there"]


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="MPS is here")
def test_a_device_that_is_not_here_is_refused():
    with pytest.raises(InputError, match="not available"):
        open_model("smollm2", device="mps")


def test_out_of_memory_is_named_and_nothing_else_is():
    with pytest.raises(RunError, match="out of memory: work"), naming_out_of_memory("work", fix="less"):
        torch.empty(2**60)
    with pytest.raises(RuntimeError, match="other"), naming_out_of_memory("work", fix="less"):
        raise RuntimeError("other")
    with pytest.raises(InputError), naming_out_of_memory("work", fix="less"):
        raise InputError("out of memory")
