"""From bits to lists: the places of the bits set in 64, written one after the other.

Processors that compress vectors (AVX-512 VBMI2) write all of them at once; on others they come one by one. Up to 64
entries are written whatever their number: lists need as much slack.
"""

# The compiled functions take addresses; numba infers their types.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from latentkt.corpus.kernel.simd import count_bits, lowest_bit, store8

__all__ = ["compresses", "list_bits", "list_bits_slowly", "list_flags", "list_flags_slowly", "store32"]

_BYTE, _HALF, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BLOCK, _FLAGS, _QUARTER = ir.VectorType(_BYTE, 64), ir.VectorType(ir.IntType(1), 64), ir.VectorType(_HALF, 16)
_ZERO, _ONE, _FOUR, _U63 = np.uint64(0), np.uint64(1), np.uint64(4), np.uint64(63)


def compresses(features: str) -> bool:
    """Whether a processor with these features (as LLVM writes them) compresses vectors of bytes."""
    return "+avx512vbmi2" in features.split(",") and "+avx512bw" in features.split(",")


@intrinsic
def store32(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the low four bytes of a value to an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _HALF.as_pointer())
        builder.store(builder.trunc(arguments[1], _HALF), pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64), generate


def list_bits_slowly(bits, base, address):
    """`list_bits` on any processor; in steps of four, so that the loop ends where it is foreseen to end."""
    for _ in range(0, count_bits(bits), 4):
        for _ in range(4):
            store32(address, base + lowest_bit(bits))
            bits &= bits - _ONE
            address += _FOUR


def list_flags_slowly(flags, bits, address):
    """`list_flags` on any processor."""
    for _ in range(0, count_bits(bits), 4):
        for _ in range(4):
            store8(address, np.int64(flags >> (np.uint64(lowest_bit(bits)) & _U63) & _ONE))
            bits &= bits - _ONE
            address += _ONE


def _compress(builder: Any, data: Any, bits: Any) -> Any:
    """The bytes of a block at which a bit is set, close together."""
    kind = ir.FunctionType(_BLOCK, [_BLOCK, _BLOCK, _FLAGS])
    name = "llvm.x86.avx512.mask.compress.v64i8"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name=name)
    return builder.call(function, [data, ir.Constant(_BLOCK, [0] * 64), builder.bitcast(bits, _FLAGS)])


@intrinsic
def list_bits(typing_context: Any, bits: Any, base: Any, address: Any) -> Any:
    """Write `base` plus the place of each bit set, four bytes each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, base, address = arguments
        if not compresses(context.codegen().magic_tuple()[2]):
            return context.compile_internal(builder, list_bits_slowly, signature, arguments)
        places = _compress(builder, ir.Constant(_BLOCK, list(range(64))), bits)
        low = builder.insert_element(ir.Constant(_QUARTER, ir.Undefined), builder.trunc(base, _HALF), _HALF(0))
        every = builder.shuffle_vector(low, low, ir.Constant(ir.VectorType(_HALF, 16), [0] * 16))
        for quarter in range(4):
            lanes = ir.Constant(ir.VectorType(_HALF, 16), list(range(16 * quarter, 16 * quarter + 16)))
            part = builder.zext(builder.shuffle_vector(places, places, lanes), _QUARTER)
            pointer = builder.inttoptr(builder.add(address, _WORD(64 * quarter)), _QUARTER.as_pointer())
            builder.store(builder.add(part, every), pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.uint64), generate


@intrinsic
def list_flags(typing_context: Any, flags: Any, bits: Any, address: Any) -> Any:
    """Write, for each bit set in `bits`, that of `flags` at its place, a byte each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flags, bits, address = arguments
        if not compresses(context.codegen().magic_tuple()[2]):
            return context.compile_internal(builder, list_flags_slowly, signature, arguments)
        chosen = _compress(builder, builder.zext(builder.bitcast(flags, _FLAGS), _BLOCK), bits)
        builder.store(chosen, builder.inttoptr(address, _BLOCK.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), generate
