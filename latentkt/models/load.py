"""Open a model by name (`smollm2`, a local folder, a hub id), or take one that is in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from latentkt.errors import InputError, ModelRefusedError
from latentkt.models.architecture import describe
from latentkt.models.devices import keep_freed_memory, prove_device
from latentkt.models.handle import ModelHandle
from latentkt.models.opening import check_reading

__all__ = ["handle_from_hf", "open_model", "quiet_transformers"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars of transformers in a `with` block; the user's setting is put back."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def open_model(
    model: str | Path,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    attn_implementation: str = "eager",
    check: bool = True,
) -> ModelHandle:
    """Open a causal language model and prove that it is read rightly.

    Nothing is fetched unless `model` is a hub id; then `huggingface_hub` fetches it (or finds it in its cache).

    Args:
        model: `smollm2`, a folder saved with `save_pretrained`, or a hub id such as `gpt2` or `EleutherAI/pythia-70m`.
        device: `cpu`, `cuda`, `cuda:1`, `mps`. On `mps` the logits are first compared with the CPU's.
        dtype: `float32`, `bfloat16` or `float16`; logits and metrics are float32 whatever it is.
        attn_implementation: `eager` (patterns exist) or `sdpa`.
        check: False leaves the proof out; for debugging only.

    Raises:
        ModelRefusedError: The model is unknown or incomplete, or what is read is not what it computes.
        InputError: An option is wrong, or the device is not there.
    """
    _check_options(device, dtype, attn_implementation)
    name = str(model)
    source, local = _source(name)
    # A download keeps its bar; reading local files needs none.
    with quiet_transformers() if local else nullcontext():
        loaded, tokenizer = _load(name, source, local, dtype=dtype, attn_implementation=attn_implementation)
    return handle_from_hf(loaded.to(device), tokenizer, name=name, check=check)


def handle_from_hf(model: nn.Module, tokenizer: Any, *, name: str, check: bool = True) -> ModelHandle:
    """A handle on a model that is already in memory, after the same checks as `open_model`.

    The model is put into eval mode and its parameters no longer require gradients. On MPS its logits are first held to
    the CPU's, with or without the other checks.

    Args:
        model: A Hugging Face causal language model.
        tokenizer: Its fast tokenizer.
        name: What to call it in tables.
        check: False leaves the proof out; for debugging only, and `report` is then None.

    Raises:
        ModelRefusedError: The structure is not known, or a check failed; the message holds the numbers.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ModelRefusedError(
            f"the tokenizer of model {name!r} gives no character offsets",
            expected="a fast tokenizer (tokenizer.is_fast)",
            found=type(tokenizer).__name__,
            fix="load it with transformers.AutoTokenizer, or convert it to a tokenizer.json",
        )
    model.eval()
    model.requires_grad_(False)
    handle = ModelHandle(name=name, model=model, tokenizer=tokenizer, arch=describe(model, name=name))
    _refuse_attention(handle)
    if handle.device.type == "mps":
        prove_device(handle)
    elif handle.device.type == "cpu":
        keep_freed_memory()
    if not check:
        return handle
    return ModelHandle(name, model, tokenizer, handle.arch, check_reading(handle))


def _refuse_attention(handle: ModelHandle) -> None:
    if handle.attn_implementation not in {"eager", "sdpa"}:
        raise ModelRefusedError(
            f"the attention implementation of model {handle.name!r} is not supported",
            expected="eager or sdpa",
            found=handle.attn_implementation,
            fix="load it with attn_implementation='eager'",
        )
    dtypes = {str(p.dtype) for p in handle.model.parameters()}
    if len(dtypes) != 1 or not next(handle.model.parameters()).is_floating_point():
        raise ModelRefusedError(
            f"the weights of model {handle.name!r} are of several or of no floating dtype",
            expected="one of float32, bfloat16, float16 for all weights",
            found=", ".join(sorted(dtypes)),
            fix="load it with dtype='float32'",
        )


def _check_options(device: str, dtype: str, attn_implementation: str) -> None:
    if dtype not in _DTYPES:
        raise InputError("unknown dtype", expected=", ".join(_DTYPES), found=repr(dtype))
    if attn_implementation not in {"eager", "sdpa"}:
        raise InputError("unknown attention implementation", expected="eager, sdpa", found=repr(attn_implementation))
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InputError("unknown device", expected="cpu, cuda, cuda:N, mps", found=repr(device)) from error
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(kind, False):
        raise InputError(
            f"device {device!r} is not available here",
            expected=", ".join(key for key, value in there.items() if value),
            found=device,
        )


def _source(name: str) -> tuple[str, bool]:
    """Where the files are: a folder and True, or a hub id and False."""
    if name == "smollm2":
        from latentkt.models.smollm2 import find_smollm2

        return str(find_smollm2()), True
    path = Path(name).expanduser()
    if not _reachable(path) or not name.strip():
        raise ModelRefusedError(
            f"unknown model {name[:80]!r}",
            expected="smollm2, an existing folder, or a hub id like ORGANISATION/NAME",
            found="no name" if not name.strip() else f"a name of {len(name)} characters that no path can have",
            fix="check the path",
        )
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelRefusedError(
                f"folder {name!r} holds no model",
                expected="config.json, weights and tokenizer as save_pretrained writes them",
                found=", ".join(sorted(p.name for p in path.iterdir())[:8]) or "an empty folder",
            )
        return str(path), True
    if path.exists() or not _HUB_ID.fullmatch(name):
        raise ModelRefusedError(
            f"unknown model {name!r}",
            expected="smollm2, an existing folder, or a hub id like ORGANISATION/NAME",
            found="a file" if path.exists() else "neither a folder nor a hub id",
            fix="check the path",
        )
    return name, False


def _reachable(path: Path) -> bool:
    """Whether the system can be asked for the path at all: it refuses names that are too long."""
    try:
        path.exists()
    except OSError:
        return False
    return True


def _load(name: str, source: str, local: bool, *, dtype: str, attn_implementation: str) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    options: dict[str, Any] = {"local_files_only": local}
    try:
        AutoConfig.from_pretrained(source, **options)
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        loaded, info = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=_DTYPES[dtype],
            attn_implementation=attn_implementation,
            output_loading_info=True,
            **options,
        )
    except Exception as error:  # whatever the loader raises: OSError, ValueError, KeyError, SafetensorError, …
        raise ModelRefusedError(
            f"model {name!r} could not be opened",
            expected="smollm2, a folder that transformers can open as a causal language model, or a hub id",
            found=_one_line(error),
            fix=None if local else "check the id; where there is no network, name a local folder or smollm2",
        ) from error
    _refuse_incomplete(name, info)
    return loaded, tokenizer


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return text if len(text) <= 300 else text[:297] + "…"


def _refuse_incomplete(name: str, info: Any) -> None:
    """A weight that the files lack would be drawn at random, and a norm's would silently be 1."""
    problems = {key: sorted(map(str, _get(info, key))) for key in ("missing_keys", "mismatched_keys", "error_msgs")}
    problems = {key: value for key, value in problems.items() if value}
    if problems:
        shown = "; ".join(f"{key}: {', '.join(value[:4])} ({len(value)})" for key, value in problems.items())
        raise ModelRefusedError(
            f"the files of model {name!r} do not hold all its weights",
            expected="every weight of the configuration, in its shape",
            found=shown,
            fix="save the model again, or fetch it again",
        )


def _get(info: Any, key: str) -> Any:
    return (info.get(key) if isinstance(info, dict) else getattr(info, key, None)) or ()
