"""Levels: which part of the machine runs a loop."""

from __future__ import annotations

from lithify.lang.levels import PRIVATE, SEQ, UNROLL, Level
from lithify.lang.term import Term
from lithify.rewrite.rule import Example, rule
from lithify.rewrite.strategy import Context, Failure, Path, Strategy
from lithify.rewrite.traversal import descend

map_level = rule(
    "map-level",
    "map@a f xs -> map[level]@a f xs",
    parameters="level",
    when=["level may enclose f"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (SEQ,))],
    law="A level says who runs the iterations, not what they compute.",
)

map_relevel = rule(
    "map-relevel",
    "map[old]@a f xs -> map[level]@a f xs",
    parameters="old level",
    when=["level may enclose f"],
    examples=[Example("λ (xs : 8.f32). map[seq] (λx. x * 2) xs", (SEQ, UNROLL))],
    law="map-level for a loop that has another level.",
)

reduce_level = rule(
    "reduce-level",
    "reduce@a f z xs -> reduce[level, memory]@a f z xs",
    parameters="level",
    defaults={"memory": None},
    when=["sequential level"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (SEQ, PRIVATE))],
    law="A reduction runs in order; its accumulator has a memory.",
)

scan_level = rule(
    "scan-level",
    "scan@a f z xs -> scan[level, memory]@a f z xs",
    parameters="level",
    defaults={"memory": None},
    when=["sequential level"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (SEQ, PRIVATE))],
    law="A scan runs in order; its accumulator has a memory.",
)


class nest(Strategy):
    """Levels for a perfect nest of abstract maps, from the outside in, through views, memories and lets.

    `nest(GROUP1, GROUP0, SEQ)` gives the outermost map the first level, the map that makes its elements the second, ..
    """

    def __init__(self, *levels: Level) -> None:
        self.levels = levels
        self.name = f"nest({', '.join(map(str, levels))})"
        self._failure = Failure(self)

    def run(self, term: Term, context: Context) -> Term | Failure:
        mark = context.mark()
        result = self._go(term, 0, context)
        if result is None:
            context.back(mark)
            return self._failure
        return result

    def _go(self, term: Term, done: int, context: Context) -> Term | None:
        if done == len(self.levels):
            return term
        if term.kind == "map":
            levelled = map_level(self.levels[done]).run(term, context)
            if isinstance(levelled, Failure):
                return None
            return descend(levelled, (0, 0), lambda t, c: self._go(t, done + 1, c), context)
        place = _through(term)
        return None if place is None else descend(term, place, lambda t, c: self._go(t, done, c), context)

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        path: Path = ()
        for done, level in enumerate(self.levels):
            while term.kind != "map":
                place = _through(term)
                if place is None:
                    return path, f"a {term.kind} where the map for {level} should be ({done} found before)"
                path += place
                for index in place:
                    term = term.args[index]
            reason = map_level(level).explain(term, context)
            if reason is not None:
                return path, f"{level}: {reason}"
            path += (0, 0)
            term = term.args[0].args[0]
        return (), "it applies"


def _through(term: Term) -> Path | None:
    """The way to what makes the elements of a term: through views of one array, memories and the bodies of lets."""
    if term.kind == "let":
        return 1, 0
    if term.kind in ("to", "pad", "launch") or (term.pattern.layout and len(term.args) == 1):
        return (0,)
    return None
