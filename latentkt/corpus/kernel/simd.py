"""Machine instructions that numba does not offer by itself, through portable LLVM vectors: no CPU is assumed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "block_masks", "byte_mask", "copy_block", "count_bits", "load8", "load64", "lowest_bit", "match4", "prefetch",
    "store8", "store_lengths",
]  # fmt: skip

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_LANE = ir.IntType(32)
_BLOCK = ir.VectorType(_BYTE, 64)
_FOUR = ir.VectorType(_WORD, 4)


@intrinsic
def load64(typing_context: Any, address: Any) -> Any:
    """Eight bytes at an address, little-endian, aligned or not."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _WORD.as_pointer()), align=1)

    return types.uint64(types.uint64), generate


@intrinsic
def load8(typing_context: Any, address: Any) -> Any:
    """The byte at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.load(builder.inttoptr(arguments[0], _BYTE.as_pointer()))
        return builder.zext(byte, _WORD)

    return types.int64(types.uint64), generate


@intrinsic
def store8(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the low byte of a value to an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _BYTE.as_pointer())
        builder.store(builder.trunc(arguments[1], _BYTE), pointer)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64), generate


@intrinsic
def copy_block(typing_context: Any, source: Any, target: Any) -> Any:
    """Copy 64 bytes; of those, one bit each: quotes, backslashes, control characters and bytes beyond ASCII."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(builder.inttoptr(arguments[0], _BLOCK.as_pointer()), align=1)
        builder.store(block, builder.inttoptr(arguments[1], _BLOCK.as_pointer()), align=1)

        def splat(value: int) -> Any:
            return ir.Constant(_BLOCK, [value] * 64)

        special = builder.icmp_unsigned(">=", builder.sub(block, splat(0x20)), splat(0x60))
        for char in b'"\\':
            special = builder.or_(special, builder.icmp_unsigned("==", block, splat(char)))
        return builder.bitcast(special, _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def lowest_bit(typing_context: Any, value: Any) -> Any:
    """Index of the lowest set bit; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(typing_context: Any, value: Any) -> Any:
    """Number of set bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for a cache line that will be read soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _BYTE.as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTE.as_pointer()], kind)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@intrinsic
def match4(typing_context: Any, address: Any, value: Any) -> Any:
    """Which of the four integers at an address equal a value, as bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = builder.load(builder.inttoptr(arguments[0], _FOUR.as_pointer()), align=8)
        wanted = ir.Constant(_FOUR, ir.Undefined)
        for lane in range(4):
            wanted = builder.insert_element(wanted, arguments[1], ir.Constant(ir.IntType(32), lane))
        return builder.zext(builder.bitcast(builder.icmp_unsigned("==", four, wanted), ir.IntType(4)), _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def byte_mask(typing_context: Any, address: Any, bits: Any) -> Any:
    """Which of the 64 bytes at an address have one of some bits set, one bit each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(builder.inttoptr(arguments[0], _BLOCK.as_pointer()), align=1)
        one = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), builder.trunc(arguments[1], _BYTE), _LANE(0))
        every = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_LANE, 64), [0] * 64))
        met = builder.icmp_unsigned("!=", builder.and_(block, every), ir.Constant(_BLOCK, [0] * 64))
        return builder.bitcast(met, _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def store_lengths(typing_context: Any, joined: Any, target: Any) -> Any:
    """For 64 words, the lengths of the phrases that may end with each as far as the gaps go, a byte each, as bits.

    At the address `joined` lies a byte for each word, 1 if it is joined to the word before; six more lie before these.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lengths = bit = ir.Constant(_BLOCK, [1] * 64)
        for back in range(7):
            address = builder.sub(arguments[0], _WORD(back))
            flags = builder.load(builder.inttoptr(address, _BLOCK.as_pointer()), align=1)
            bit = builder.and_(builder.add(bit, bit), builder.sub(ir.Constant(_BLOCK, [0] * 64), flags))
            lengths = builder.or_(lengths, bit)
        builder.store(lengths, builder.inttoptr(arguments[1], _BLOCK.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


@intrinsic
def block_masks(typing_context: Any, address: Any) -> Any:
    """Of 64 bytes at an address, one bit each: ASCII word characters, ASCII white space, bytes beyond ASCII, NULs."""
    result = types.UniTuple(types.uint64, 4)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(builder.inttoptr(arguments[0], _BLOCK.as_pointer()), align=1)

        def splat(value: int) -> Any:
            return ir.Constant(_BLOCK, [value] * 64)

        def within(vector: Any, first: int, count: int) -> Any:
            return builder.icmp_unsigned("<", builder.sub(vector, splat(first)), splat(count))

        letter = within(builder.or_(block, splat(0x20)), ord("a"), 26)
        word = builder.or_(builder.or_(letter, within(block, ord("0"), 10)), within(block, ord("_"), 1))
        space = builder.or_(builder.or_(within(block, 9, 5), within(block, 0x1C, 4)), within(block, 0x20, 1))
        masks = (word, space, within(block, 0x80, 0x80), within(block, 0, 1))
        return context.make_tuple(builder, signature.return_type, [builder.bitcast(mask, _WORD) for mask in masks])

    return result(types.uint64), generate
