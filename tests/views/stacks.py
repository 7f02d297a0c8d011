"""Random stacks of maps over small spaces."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from lithify.lang.index_functions import reverse, stride
from lithify.views import View, bottom_up
from lithify.views.concrete import shape

LIMIT = 3000  # elements of the largest space


def elements(view: View) -> int:
    total = 1
    for extent in shape(view.upper):
        total *= extent
    return total


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


@st.composite
def views(draw: st.DrawFn, maps: int = 4, kinds: str = "PSEUMABXRpw") -> View:
    """A view of a space of up to three dims; `kinds` says which transforms may occur (see `_one`)."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    view = View(bottom_up({f"s{i}": n for i, n in enumerate(sizes)}).passthrough(*range(len(sizes))).get().upper)
    for level in range(draw(st.integers(0, maps))):
        view = draw(one_map(view, level, kinds))
        assume(0 < elements(view) <= LIMIT)
    return view


@st.composite
def one_map(draw: st.DrawFn, view: View, level: int, kinds: str) -> View:
    builder = view.above()
    sizes = dict(zip([d.name for d in view.upper], shape(view.upper), strict=True))
    left = draw(st.permutations(list(sizes)))
    made = 0

    def fresh() -> str:
        nonlocal made
        made += 1
        return f"m{level}_{made}"

    while left:
        name = left.pop()
        n = sizes[name]
        kind = draw(st.sampled_from("-" + kinds))
        if kind == "P":
            amounts = draw(st.integers(0, 2)), draw(st.integers(0, 2))
            builder.pad(name, *amounts, fresh(), value=draw(st.sampled_from([0, 7])))
        elif kind == "p":
            mode = draw(st.sampled_from(["clamp", "mirror", "wrap"]))
            builder.pad(name, draw(st.integers(0, 3)), draw(st.integers(0, 3)), fresh(), mode)
        elif kind == "S":
            begin = draw(st.integers(0, n - 1))
            builder.slice(name, begin, draw(st.integers(begin + 1, n)), fresh())
        elif kind == "E":
            upper = {fresh(): draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 2)))}
            builder.embed(name, upper, [draw(st.integers(-2, 3)) for _ in upper], draw(st.integers(-2, 3)))
        elif kind == "w":  # windows
            size, step = draw(st.integers(1, n)), draw(st.integers(1, 3))
            builder.embed(name, {fresh(): (n - size) // step + 1, fresh(): size}, [step, 1])
        elif kind == "U":
            inner = draw(st.sampled_from(divisors(n)))
            builder.unmerge(name, {fresh(): n // inner, fresh(): inner})
        elif kind == "M" and left:
            count = draw(st.integers(1, len(left)))
            builder.merge(fresh(), [name, *[left.pop() for _ in range(count)]])
        elif kind == "A":
            builder.add_dim(fresh(), draw(st.integers(1, 3)), draw(st.integers(0, len(sizes) - 1)))
            builder.passthrough(name)
        elif kind == "B":
            builder.broadcast(name, draw(st.integers(n, 2 * n + 1)), fresh())
        elif kind == "X" and left and n in (1, 2, 4, 8):
            builder.xor(left.pop(), name, draw(st.integers(1, 2)))
        elif kind == "R":
            function = reverse(n) if draw(st.booleans()) else stride(draw(st.sampled_from(divisors(n))), n)
            builder.reindex(name, function, fresh())
        else:
            builder.passthrough(name)
    made_dims = [d.name for d in builder.get().upper]
    return builder.get(draw(st.permutations(made_dims)))
