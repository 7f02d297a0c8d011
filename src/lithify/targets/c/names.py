"""The names that C's library has taken: what the included headers declare, and what compilers know without a header.

Source: ISO/IEC 9899:2011, chapter 7 and the names that 7.31 reserves.
"""

from __future__ import annotations

from lithify.targets.cdialect.names import words

_MATHEMATICS = """
    acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p
    log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint
    round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt
    ctan ctanh exp10 pow10 gamma drem significand finite j0 j1 jn y0 y1 yn sincos scalb
"""

_WORDS = """
    main errno signgam isnan isinf isfinite isnormal signbit fpclassify isgreater isgreaterequal isless islessequal
    islessgreater isunordered HUGE_VAL HUGE_VALF HUGE_VALL INFINITY NAN NULL RAND_MAX EXIT_SUCCESS EXIT_FAILURE
    MB_CUR_MAX float_t double_t bool true false offsetof size_t ptrdiff_t wchar_t max_align_t div_t ldiv_t lldiv_t
    complex imaginary unix linux i386 alloca
    abort abs atexit atof atoi atol atoll at_quick_exit bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc
    mblen mbtowc mbstowcs qsort quick_exit rand random srand srandom realloc strtod strtof strtol strtold strtoll
    strtoul strtoull system wctomb wcstombs aligned_alloc posix_memalign
    memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strerror strlen strncat strncmp
    strncpy strpbrk strrchr strspn strstr strtok strxfrm strdup strndup bcmp bcopy bzero index rindex ffs
    fprintf fputc fputs fscanf fwrite printf putc putchar puts scanf snprintf sprintf sscanf vfprintf vfscanf vprintf
    vscanf vsnprintf vsprintf vsscanf
    isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit tolower toupper
    SIZE_MAX PTRDIFF_MIN PTRDIFF_MAX SIG_ATOMIC_MIN SIG_ATOMIC_MAX WCHAR_MIN WCHAR_MAX WINT_MIN WINT_MAX
    INTPTR_MIN INTPTR_MAX UINTPTR_MAX INTMAX_MIN INTMAX_MAX UINTMAX_MAX intptr_t uintptr_t intmax_t uintmax_t
"""

_CONSTANTS = words("M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2")


def _families() -> set[str]:
    """The names that are made of parts: functions for each kind of float, integers of each width and their limits."""
    names = {f + suffix for f in words(_MATHEMATICS) for suffix in ("", "f", "l")}
    for bits in (8, 16, 32, 64):
        for kind in ("int", "int_least", "int_fast"):
            name = f"{kind}{bits}"
            names |= {f"{name}_t", f"u{name}_t"}
            names |= {f"{name.upper()}_MIN", f"{name.upper()}_MAX", f"U{name.upper()}_MAX"}
    return names | _CONSTANTS


RESERVED = words(_WORDS) | _families()
