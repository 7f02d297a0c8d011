"""C11 as a dialect: no vectors (loops over lanes instead), OpenMP for parallel loops where the compiler has it on."""

from __future__ import annotations

from lithify.lang.scalars import (
    SCALARS,
    bf16,
    bool_,
    complex64,
    complex128,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i64,
    u32,
    u64,
)
from lithify.targets.c.names import RESERVED
from lithify.targets.cdialect.auxiliaries import complex_conversions
from lithify.targets.cdialect.dialect import AtomicForms, Dialect
from lithify.targets.cdialect.lowfloats import coded, low_float_auxiliaries
from lithify.targets.cdialect.names import words

_INTEGERS = {SCALARS[f"{sign}{bits}"]: f"{'u' if sign == 'u' else ''}int{bits}_t"
             for sign in "iu" for bits in (8, 16, 32, 64)}  # fmt: skip
_FUNCTION = "static inline"


_BITS = {
    "bits_of_f32": f"""{_FUNCTION} uint32_t bits_of_f32(float x) {{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}}""",
    "f32_of_bits": f"""{_FUNCTION} float f32_of_bits(uint32_t bits) {{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}}""",
}


_UPDATED_BY_SYMBOL = {
    (name, scalar): ("ATOMIC", f"{{pointer}}[{{index}}] {symbol}= {{value}};")
    for name, symbol in (("add", "+"), ("mul", "*"), ("and", "&"), ("or", "|"), ("xor", "^"))
    for scalar in (f32, f64, u32, u64)
    if scalar in (u32, u64) or name in ("add", "mul")
}

C = Dialect(
    name="C",
    types={
        bool_: "bool",
        **_INTEGERS,
        f32: "float",
        f64: "double",
        complex64: "complex64",
        complex128: "complex128",
    },
    storage={
        f16: coded("f16", "uint16_t"),
        bf16: coded("bf16", "uint16_t"),
        f8e4m3: coded("f8e4m3", "uint8_t"),
        f8e5m2: coded("f8e5m2", "uint8_t"),
    },
    index_types={32: "int32_t", 64: "int64_t"},
    unsigned_index_types={32: "uint32_t", 64: "uint64_t"},
    literal_suffixes={f32: "f", u32: "u", u64: "u", i64: ""},
    suffixes={f32: "f", f64: ""},
    least_integers={32: "INT32_MIN", 64: "INT64_MIN"},
    operations={},
    auxiliary_texts={
        **low_float_auxiliaries(_FUNCTION, "uint32_t", "float", "double"),
        **_BITS,
        **complex_conversions(_FUNCTION),
    },
    spaces={},
    hardware={},
    barriers={},
    fences={},
    atomics=AtomicForms(
        builtin=_UPDATED_BY_SYMBOL,
        fallback=("CRITICAL {{ {update} }}",),
        bits=frozenset((8, 16, 32, 64)),
    ),
    restrict="restrict",
    function=_FUNCTION,
    aligned="ALIGNED({bytes})",
    reserved=RESERVED | words("ALIGNED ATOMIC CRITICAL PARALLEL_FOR LANES workspace thread_number thread_count"),
    lane_pragma="LANES",
    parallel_pragma="PARALLEL_FOR",
    stack_bytes=1 << 15,
    workspace="{t} *const {name} = ({t} *)(workspace + (size_t)thread_number() * {stride} + {offset});",
)
