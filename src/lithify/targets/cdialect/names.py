"""Identifiers: what a variable or buffer of a kernel is called in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Names:
    """Hands out identifiers that are unique among those in scope."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)

    def fresh(self, wish: str) -> str:
        """An unused identifier as close to the wish as possible."""
        base = identifier(wish)
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """The name's scope has ended."""
        self._taken.discard(name)


def identifier(wish: str) -> str:
    """The wish as a C identifier; `m.block` becomes `m_block`."""
    name = re.sub(r"\W", "_", wish, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = "v" + name
    # C reserves identifiers that begin with an underscore and a capital or a second underscore
    return name if not name.startswith("_") else "v" + name


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(re.findall(r"\w+", text))


# Keywords, what the standard headers define, and the functions that kernels call: a variable of such a name hides it.
KEYWORDS = words("""
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    asm bool true false main NAN INFINITY memcpy malloc free aligned_alloc
    fmin fmax pow fma sqrt rsqrt exp log sin cos tan tanh erf floor ceil fabs rint hypot atan2 sinh cosh copysign
    fminf fmaxf powf fmaf sqrtf expf logf sinf cosf tanf tanhf erff floorf ceilf fabsf rintf hypotf atan2f sinhf coshf
    copysignf
""")
