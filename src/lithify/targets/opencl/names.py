"""The names that OpenCL C has taken: a kernel or variable called so would clash with, or hide, what is built in.

Source: The OpenCL C 3.0 Specification, chapters 6.3 (types), 6.7 to 6.11 (qualifiers) and 6.15 (functions and macros).
"""

from __future__ import annotations

from lithify.targets.cdialect.names import words

_TYPES = "char uchar short ushort int uint long ulong half float double bool quad complex imaginary"

_WORDS = """
    kernel global local constant private generic read_only write_only read_write uniform pipe main
    size_t ptrdiff_t intptr_t uintptr_t event_t queue_t clk_event_t reserve_id_t ndrange_t sampler_t
    image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t image3d_t
    NULL NAN INFINITY MAXFLOAT HUGE_VAL HUGE_VALF FP_FAST_FMA FP_FAST_FMAF CHAR_BIT
    get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id get_global_offset
    get_enqueued_local_size get_global_linear_id get_local_linear_id get_sub_group_size get_sub_group_id
    acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cbrt ceil copysign cos cosh cospi erf erfc exp
    exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log10 log1p
    log2 logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos sinh
    sinpi sqrt tan tanh tanpi tgamma trunc
    abs abs_diff add_sat clz ctz hadd mad24 mad_hi mad_sat max min mul24 mul_hi popcount rhadd rotate sub_sat upsample
    clamp degrees mix radians sign smoothstep step
    cross distance dot fast_distance fast_length fast_normalize length normalize
    all any bitselect isequal isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal
    isnotequal isordered isunordered select signbit
    barrier mem_fence read_mem_fence write_mem_fence work_group_barrier async_work_group_copy
    async_work_group_strided_copy wait_group_events prefetch printf shuffle shuffle2 vec_step convert
    to_global to_local to_private get_fence enqueue_kernel
    read_imagef read_imagei read_imageui read_imageh write_imagef write_imagei write_imageui write_imageh
    get_image_width get_image_height get_image_depth
"""

_WIDTHS = ("2", "3", "4", "8", "16")


def _families() -> set[str]:
    """The names that are made of parts: vector types, conversions, vector loads, atomics, constants of types."""
    types = words(_TYPES)
    shaped = {t + width for t in types for width in ("", *_WIDTHS)}
    names = shaped | {f"{way}_{t}" for way in ("convert", "as") for t in shaped}
    accesses = words("vload vstore vload_half vstore_half vloada_half vstorea_half")
    names |= {access + width for access in accesses for width in ("", *_WIDTHS)}
    mathematics = words("cos divide exp exp2 exp10 log log2 log10 powr recip rsqrt sin sqrt tan")
    names |= {f"{speed}_{f}" for speed in ("half", "native") for f in mathematics}
    names |= {
        f"{prefix}_{f}"
        for prefix in ("atomic", "atom")
        for f in words("add sub xchg inc dec cmpxchg min max and or xor init load store exchange")
    }
    names |= {f"{t}_{end}" for t in words("CHAR SCHAR SHRT INT LONG") for end in ("MIN", "MAX")}
    names |= {f"{t}_MAX" for t in words("UCHAR USHRT UINT ULONG")}
    limits = words("DIG MANT_DIG MAX_10_EXP MAX_EXP MIN_10_EXP MIN_EXP RADIX MAX MIN EPSILON")
    names |= {f"{t}_{limit}" for t in ("HALF", "FLT", "DBL") for limit in limits}
    constants = words("E LOG2E LOG10E LN2 LN10 PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI SQRT2 SQRT1_2")
    names |= {f"M_{name}{end}" for name in constants for end in ("", "_F", "_H")}
    return names


RESERVED = words(_WORDS) | _families()
