"""OpenCL C 1.2 as a dialect: vectors of 2 to 16 elements, work-groups with local memory and barriers.

Nothing beyond 1.2 is used, so that the same text runs on CPUs (PoCL), on NVIDIA's own OpenCL and under oclgrind.
"""

from __future__ import annotations

from lithify.lang.scalars import (
    SCALARS,
    Kind,
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
from lithify.targets.cdialect.auxiliaries import complex_conversions
from lithify.targets.cdialect.dialect import AtomicForms, Dialect, LastGroupForms, Storage, VectorForms
from lithify.targets.cdialect.lowfloats import coded, low_float_auxiliaries
from lithify.targets.cdialect.operations import VECTOR_OPERATIONS
from lithify.targets.cdialect.text import EQUALITY, PRIMARY, UNARY, Template, call
from lithify.targets.opencl.names import RESERVED

_INTEGERS = {
    SCALARS[f"{sign}{bits}"]: f"{'u' if sign == 'u' else ''}{name}"
    for sign in "iu"
    for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
}
_FUNCTION = "inline static"
WIDTHS = (16, 8, 4, 2)


_BITS = {
    "bits_of_f32": f"{_FUNCTION} uint bits_of_f32(float x) {{ return as_uint(x); }}",
    "f32_of_bits": f"{_FUNCTION} float f32_of_bits(uint bits) {{ return as_float(bits); }}",
}
# Rounding to f16 by storing and loading it, which every OpenCL has (arithmetic on f16 is an extension).
_ROUND_F16 = {
    "round_f16": f"""{_FUNCTION} float round_f16(float x) {{
  ushort bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return vload_half(0, (const half *)&bits);
}}""",
    **{
        f"round_f16x{w}": f"""{_FUNCTION} float{w} round_f16x{w}(float{w} x) {{
  ushort bits[{w}];
  vstore_half{w}_rte(x, 0, (half *)bits);
  return vload_half{w}(0, (const half *)bits);
}}"""
        for w in WIDTHS
    },
}
# What a group wrote is seen by whoever sees that it counted itself. NVIDIA's mem_fence is one of the work-group only
# (diku-dk/futhark, issue 734).
_LAST = {
    "is_last": f"""#if defined(cl_nv_pragma_unroll) || defined(__NV_CL_C_VERSION)
#define FENCE_OF_DEVICE asm volatile("membar.gl;" ::: "memory")
#else
#define FENCE_OF_DEVICE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
{_FUNCTION} int is_last(volatile __global int *counter, int groups) {{
  FENCE_OF_DEVICE;
  const int last = atomic_inc(counter) == groups - 1;
  if (last) {{
    *counter = 0;
    FENCE_OF_DEVICE;
  }}
  return last;
}}"""
}
_GROUP_BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
_EXCHANGE = """inline static void {{name}}(volatile {{space}} {{t}} *element, {{t}} value) {{{{
  {u} seen, next = {function}((volatile {{space}} {u} *)element, 0, 0);
  do {{{{
    seen = next;
    const {{t}} now = as_{{t}}(seen);
    next = {function}((volatile {{space}} {u} *)element, seen, as_{u}(({{t}})({{combined}})));
  }}}} while (next != seen);
}}}}"""

OPENCL = Dialect(
    name="OpenCL C",
    types={
        bool_: "bool",
        **_INTEGERS,
        f32: "float",
        f64: "double",
        complex64: "complex64",
        complex128: "complex128",
    },
    storage={
        bool_: Storage(
            parameter="uchar",
            array="uchar",
            load=Template("{pointer}[{index}] != 0", EQUALITY),
            store="{pointer}[{index}] = {value};",
            vector_load=Template("vload{width}(0, {address}) != (uchar{width})(0)", EQUALITY),
            vector_store="vstore{width}(convert_uchar{width}(-({value})), 0, {address});",
        ),
        f16: Storage(
            parameter="half",
            array="ushort",
            load=Template("vload_half({index}, {pointer})"),
            store="vstore_half_rte({value}, {index}, {pointer});",
            vector_load=Template("vload_half{width}(0, {address})"),
            vector_store="vstore_half{width}_rte({value}, 0, {address});",
            cast="(({space} half *){name})",
        ),
        bf16: coded("bf16", "ushort"),
        f8e4m3: coded("f8e4m3", "uchar"),
        f8e5m2: coded("f8e5m2", "uchar"),
    },
    index_types={32: "int", 64: "long"},
    unsigned_index_types={32: "uint", 64: "ulong"},
    literal_suffixes={f32: "f", u32: "u", u64: "u", i64: ""},
    suffixes={},
    least_integers={32: "INT_MIN", 64: "LONG_MIN"},
    operations={
        ("rsqrt", Kind.FLOAT): call("rsqrt", 1),
        **{
            (name, kind): Template(f"{name}(({{t}}){{0}}, ({{t}}){{1}})", PRIMARY, (UNARY, UNARY))  # overloaded: a
            for name in ("min", "max")  # literal is an int and fits no overload beside a narrower or wider operand
            for kind in (Kind.SIGNED, Kind.UNSIGNED)
        },
    },
    auxiliary_texts={
        **low_float_auxiliaries(_FUNCTION, "uint", "float", "double"),
        **_BITS,
        **_ROUND_F16,
        **complex_conversions(_FUNCTION),
        **_LAST,
    },
    spaces={"heap": "__global", "out": "__global", "local": "__local"},
    hardware={
        "global": "get_global_id({dim})",
        "group": "get_group_id({dim})",
        "item": "get_local_id({dim})",
        "warp": "get_local_id({dim})",
        "lane": "get_local_id({dim})",
    },
    barriers={"group": "barrier({fences});"},
    fences={"local": "CLK_LOCAL_MEM_FENCE", "heap": "CLK_GLOBAL_MEM_FENCE", "global": "CLK_GLOBAL_MEM_FENCE"},
    atomics=AtomicForms(
        builtin={
            (name, SCALARS[scalar]): (f"atomic_{name}(&{{pointer}}[{{index}}], {{value}});",)
            for name in ("add", "sub", "min", "max", "and", "or", "xor")
            for scalar in ("i32", "u32")
        },
        fallback=("{auxiliary}(&{pointer}[{index}], {value});",),
        auxiliary={
            32: _EXCHANGE.format(u="uint", function="atomic_cmpxchg"),
            64: _EXCHANGE.format(u="ulong", function="atom_cmpxchg"),
        },
    ),
    restrict="restrict",
    function=_FUNCTION,
    aligned="__attribute__((aligned({bytes})))",
    reserved=RESERVED | {"is_last", "FENCE_OF_DEVICE"},
    last_group=LastGroupForms(
        declaration="__local int {flag};",
        lines=(
            _GROUP_BARRIER,
            "if ({first}) {{",
            "{flag} = is_last(&{counter}[{index}], {groups});",
            "}}",
            _GROUP_BARRIER,
            "if ({flag}) {{",
        ),
        auxiliary="is_last",
    ),
    vectors=VectorForms(
        widths=WIDTHS,
        load="vload{width}(0, {address})",
        store="vstore{width}({value}, 0, {address})",
        aligned="*({type} *)({address})",
        components="0123456789abcdef",
        scalars=frozenset((bool_, f16, f32, f64, *_INTEGERS)),
        operations=VECTOR_OPERATIONS,
        # PoCL's are wrong in lanes that hold a small value beside one of 2^23 or more (pocl/pocl, pull request 2309).
        lane_by_lane=frozenset((name, f32) for name in ("sin", "cos", "tan")),
    ),
)  # fmt: skip
