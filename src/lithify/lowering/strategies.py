"""The strategies that `lower` and `lithify derive --strategy` know by name.

A name may be followed by parameters: `tiled(n=32, m=32, k=8)`.
"""

from __future__ import annotations

from lithify.lang.errors import RewriteFailed
from lithify.lang.spelling import choices
from lithify.lowering import matrix_multiplication, reduction
from lithify.lowering.matrix_multiplication import Tiling
from lithify.lowering.reduction import Version
from lithify.lowering.tuning import Parameters

NamedStrategy = Version | Tiling


def strategies() -> dict[str, NamedStrategy]:
    """The named strategies, with their default parameters."""
    return {s.name: s for s in (*reduction.VERSIONS, *matrix_multiplication.VERSIONS)}


def named(text: str) -> NamedStrategy:
    """The strategy of that name, with the parameters that follow it.

    Raises RewriteFailed, with names that are close, where there is none, or it has no such parameter.
    """
    name, opened, rest = text.replace(" ", "").partition("(")
    found = strategies().get(name)
    if found is None:
        raise RewriteFailed(f"there is no strategy named {name}", hint=choices(name, strategies()))
    if not opened:
        return found
    known = found.parameters if isinstance(found, Tiling) else ()
    given = Parameters.parse(rest.removesuffix(")"))
    for parameter, value in given.items():
        if parameter not in known or not isinstance(value, int) or value < 1:
            parameters = f"positive numbers for {', '.join(known)}" if known else "no parameters"
            raise RewriteFailed(f"{parameter}={value} is no parameter of {name}", hint=f"it takes {parameters}")
    assert isinstance(found, Tiling)
    return found.with_sizes({p: given.number(p) for p in given})
