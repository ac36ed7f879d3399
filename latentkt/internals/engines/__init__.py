"""Engines: ways to run a model, read its sites and change them. Measurements are written once against `Engine.run`.

| name | what it is |
|---|---|
| `fast` | the Hugging Face modules; sweeps by staircase (exact) |
| `reference` | one plain forward a cell, its own plain hooks: the oracle |
| `transformer_lens` | a TransformerBridge on a copy of the model |
| `nnsight` | local tracing; a request for NDIF can be built, and is never sent |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.internals.engines.base import Engine
    from latentkt.models import ModelHandle

__all__ = ["ENGINES", "engine_of"]

ENGINES = {
    "fast": ("fast", "FastEngine"),
    "reference": ("reference", "ReferenceEngine"),
    "transformer_lens": ("bridge", "BridgeEngine"),
    "nnsight": ("tracing", "TracingEngine"),
}


def engine_of(model: ModelHandle | Engine, engine: str = "fast", **options: Any) -> Engine:
    """The engine of a name on a model; an engine that is given already is returned as it is.

    Args:
        model: An opened model, or an engine.
        engine: One of `ENGINES`.
        **options: For the engine: `memory_mb` of `fast`.

    Raises:
        InputError: The name is unknown, or the engine has no such option.

    Example:
        >>> from latentkt.internals import engine_of
        >>> engine_of(None, "faster")
        Traceback (most recent call last):
        ...
        latentkt.errors.InputError: unknown engine 'faster'
          expected: fast, reference, transformer_lens or nnsight
    """
    from latentkt.internals.engines.base import Engine

    if isinstance(model, Engine):
        return model
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}", expected="fast, reference, transformer_lens or nnsight")
    if options and engine != "fast":
        raise InputError(f"options of engine {engine!r}", expected="none: they are those of fast", found=list(options))
    module, name = ENGINES[engine]
    made: Engine = getattr(importlib.import_module(f"{__name__}.{module}"), name)(model, **options)
    return made
