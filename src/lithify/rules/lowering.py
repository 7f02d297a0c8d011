"""Small steps of lowering: one dimension of a copy, a memory for any value, a name for what is read twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lithify.arith import Expr, proves_divisible
from lithify.lang.build import generate, join, let, map_, proj, reduce_, split, to, tuple_
from lithify.lang.levels import HEAP, PRIVATE, SEQ, UNROLL, VEC, Level, Memory
from lithify.lang.patterns import PATTERNS
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, apply, below_parameters, dangling, shift
from lithify.lang.types import Array, Tuple, Type
from lithify.rewrite.rule import Example, Refused, code_rule, rule
from lithify.rewrite.strategy import Context
from lithify.rules.holes import find, plug

GROUP, ITEM = Level("group"), Level("item")  # for the examples

to_memory = rule(
    "to-memory",
    "e -> to[memory] e",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32). map[seq] (λx. x * 2) xs", (HEAP,))],
    law="A memory says where a value lies, not what it is.",
)

bind_memory = rule(
    "bind-memory",
    "let x = e in b x -> let x = to[memory] e in b x",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32). let ys = map[seq] (λx. x * 2) xs in map[seq] (+) (zip ys xs)", (HEAP,))],
    law="to-memory for a value that has a name: it is written once and read from there.",
)

bind_transposed = rule(
    "bind-transposed",
    "let x = to[memory] (T e) in b x -> let x = to[memory] e in b (T x)",
    examples=[
        Example(
            "λ (A : 4.6.f32). let B = to[heap] (transpose (map[seq] (λr. map[seq] (λx. x * 2) r) A)) in map[seq] "
            "(λr. map[seq] (λx. x + 1) r) B"
        )
    ],
    law="A value lies in memory as it is computed; its reader sees it transposed.",
)

copy_loop = rule(
    "copy-loop",
    "xs -> map[level] (λx. x) xs",
    parameters="level",
    when=["array xs"],
    examples=[Example("λ (xs : 8.f32). reorder reverse xs", (SEQ,))],
    law="A copy of one dimension: a loop that writes what it reads.",
)

copy_vectors = rule(
    "copy-vectors",
    "xs -> join (map[level] (λv. map[vec] (λx. x) v) (split w xs))",
    parameters="level w",
    when=["w | length xs"],
    examples=[Example("λ (xs : 8.f32). reorder reverse xs", (SEQ, 4))],
    law="copy-loop, w elements at a time.",
)

copy_vectors_rest = rule(
    "copy-vectors-rest",
    """xs -> concat (join (map[level] (λv. map[vec] (λx. x) v) (split w (take (length xs - length xs % w) xs))))
                  (map[rest] (λx. x) (drop (length xs - length xs % w) xs))""",
    parameters="level w rest",
    when=["w >= 1"],
    examples=[Example("λ (xs : 7.f32). reorder reverse xs", (SEQ, 4, SEQ))],
    law="copy-vectors for any length: what is left over is copied by a loop of its own.",
)

copy_second = rule(
    "copy-second",
    "X -> T (map[level] (λx. x) (T X))",
    parameters="level",
    when=["width X >= 0"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (SEQ,))],
    law="A copy of two dimensions: a loop along the second, whose body copies the first.",
)

copy_third = rule(
    "copy-third",
    "X -> map (λr. T r) (T (map[level] (λx. x) (T (map (λr. T r) X))))",
    parameters="level",
    when=["width X >= 0"],
    examples=[Example("λ (A : 2.4.6.f32). reorder reverse A", (SEQ,))],
    law="A copy of three dimensions: a loop along the third, whose body copies the first two.",
)


@code_rule(
    "copy-joined",
    "X -> split (width X) (map[level] (λx. x) (join X))",
    kinds=" ".join(PATTERNS),
    parameters="count level",
    defaults={"width": 1},
    when=[
        "the first count dimensions of X can be joined",
        "width | the length of the last dimension, if that is joined",
    ],
    examples=[Example("λ (A : 2.4.6.f32). reorder reverse A", (3, SEQ, 3))],
    law="A copy whose first dimensions are one loop; where these are all, of vectors of `width` elements.",
)
def copy_joined(term: Term, context: Context, count: int, level: Level, width: int) -> Term | None:
    """The notation would need one rule for each number of dimensions."""
    del context
    widths: list[Expr] = []
    xs = term
    for _ in range(count - 1):
        if not (isinstance(xs.type, Array) and isinstance(xs.type.element, Array)):
            return None
        widths.append(xs.type.element.size)
        xs = join(xs)
    assert isinstance(xs.type, Array)
    if width == 1:
        copy = map_(lambda x: x, xs, level)
    elif isinstance(xs.type.element, Array) or not proves_divisible(xs.type.size, width):
        return None
    else:
        copy = join(map_(lambda v: map_(lambda x: x, v, VEC), split(width, xs), level))
    for size in reversed(widths):
        copy = split(size, copy)
    return copy


copy_steps = rule(
    "copy-steps",
    """X -> T (take (width X) (join (map[level] (λsteps. T (copy[levels] (T steps)))
                                     (split w (pad 0 (-width X % w) clamp (T X))))))""",
    parameters="level w levels",
    when=["w >= 1", "width X >= 0"],
    examples=[
        Example("λ (A : 4.6.2.f32). reorder reverse A", (SEQ, 3, (SEQ, SEQ, UNROLL))),
        Example("λ (A : 4.7.f32). reorder reverse A", (SEQ, 3, (SEQ, SEQ))),
    ],
    law="""A copy of two dimensions or more: a loop along the second, w steps at a time, around the first. Where the
    second is far apart in memory and the first is not, what is read follows what was read before. The last steps are
    filled up with copies of the last one, which are dropped; there are none where w divides the width.""",
)

copy_parts = rule(
    "copy-parts",
    "xs -> concat (take n xs) (map[level] (λx. x) (drop n xs))",
    parameters="n level",
    when=["array xs", "n >= 0", "n <= length xs"],
    examples=[Example("λ (xs : 8.f32). reorder reverse xs", (6, SEQ))],
    law="copy-loop for all but the first elements, which are to be copied in a way of their own.",
)

copy_parts_across = rule(
    "copy-parts-across",
    "X -> T (concat (take n (T X)) (map[level] (λx. x) (drop n (T X))))",
    parameters="n level",
    when=["n >= 0", "n <= width X"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (5, SEQ))],
    law="copy-parts along the second dimension.",
)

_TILES = """T (join (map[level] (λcolumns. T (join (map[seq] (λblock.
    T (join (map[unroll] (λtile. T (let t = to[memory] (copy[across] (T tile)) in copy[levels] t))
    (split w (T block))))) (split w (T columns)))))
    (split (k * w) (T {}))))"""

copy_tiles = rule(
    "copy-tiles",
    f"X -> {_TILES.format('X')}",
    parameters="level w k memory across levels",
    when=["w | length X", "k * w | width X"],
    examples=[Example("λ (A : 4.12.f32). reorder reverse A", (SEQ, 2, 3, PRIVATE, (VEC, UNROLL), (UNROLL, VEC)))],
    law="""A copy of a matrix in squares, k side by side, and these one below the other: each is copied to a memory, all
    its columns side by side, and from there row by row. So both sides meet neighbours in memory where X is read along
    its columns and written along its rows; what is written is k squares wide; and the next squares read on where the
    last ones ended, which processors look ahead for.""",
)

copy_tiles_across = rule(
    "copy-tiles-across",
    f"X -> T ({_TILES.format('(T X)')})",
    parameters="level w k memory across levels",
    when=["w | width X", "k * w | length X"],
    examples=[Example("λ (A : 12.4.f32). reorder reverse A", (SEQ, 2, 3, PRIVATE, (VEC, UNROLL), (UNROLL, VEC)))],
    law="copy-tiles where X is read along its rows and written along its columns.",
)


@code_rule(
    "copy-merged",
    "X -> map (split n) (map join X)",
    kinds=" ".join(PATTERNS),
    parameters="place",
    when=["place >= 1", "dimension place of X holds arrays of arrays"],
    examples=[Example("λ (A : 2.4.6.f32). reorder reverse A", (1,))],
    law="A copy of rows is a copy of what they hold, row after row, in each element of the dimensions before.",
)
def copy_merged(term: Term, context: Context, place: int) -> Term | None:
    """The notation would need one rule for each number of dimensions before the pair. (Without any, `split n (join X)`
    is X.)"""
    del context
    if place < 1:
        return None
    inner: Type = term.type
    for _ in range(place):
        inner = inner.element if isinstance(inner, Array) else inner
    if not (isinstance(inner, Array) and isinstance(inner.element, Array)):
        return None
    size = inner.element.size

    def below(f: Callable[[Term], Term], xs: Term, depth: int) -> Term:
        return f(xs) if depth == 0 else map_(lambda x: below(f, x, depth - 1), xs)

    return below(partial(split, size), below(join, term, place), place)


fuse_named = rule(
    "fuse-named",
    "map@a f (map@b g xs) -> map@a/b (λx. let y = g x in f y) xs",
    examples=[Example("λ (xs : 8.f32). map (λx. x * x) (map sqrt xs)")],
    law="map-fusion that computes each element once, however often f reads it.",
)

fuse_stored = rule(
    "fuse-stored",
    "map@a f (map@b g xs) -> map@a/b (λx. let y = to[memory] (g x) in f y) xs",
    parameters="memory",
    examples=[Example("λ (A : 4.6.f32). map (reduce (+) 0) (map (map sqrt) A)", (PRIVATE,))],
    law="map-fusion that writes each element, an array, to a memory before f reads it.",
)

reduce_fuse_named = rule(
    "reduce-fuse-named",
    "reduce@k f z (map@b g xs) -> reduce@k/b (λacc x. let y = g x in f acc y) z xs",
    examples=[Example("λ (xs : 8.f32). reduce (λacc x. acc + x * x) 0 (map sqrt xs)")],
    law="reduce-map-fusion that computes each element once, however often f reads it.",
)

cut_borders = rule(
    "cut-borders",
    """map@a f xs -> concat (map@a.head f (take low xs)) (map@a.body f (take inner (drop low xs)))
                             (map@a.tail f (drop (low + inner) xs))""",
    parameters="low inner",
    when=["low >= 0", "inner >= 0", "low + inner <= length xs"],
    examples=[Example("λ (xs : 8.f32). map (reduce (+) 0) (slide 3 1 (pad 1 1 clamp xs))", (1, 6))],
    law="""The two ends apart from the interior: index-set splitting where a loop reads padding. In the interior the
    ranges of the indices prove every condition, and none is left.""",
)

one_item = rule(
    "one-item",
    "map@a f xs -> join (map[level]@a (λx. let s = f x in map[writer] (λy. y) (singleton s)) xs)",
    parameters="level writer",
    when=["element f"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (GROUP, ITEM))],
    law="All items of a group compute the element, one of them writes it.",
)

one_group = rule(
    "one-group",
    """reduce@k f z xs -> nth 0 (join (map[level] (λx. let s = reduce@k f z x in map[writer] (λy. y) (singleton s))
                                            (singleton xs)))""",
    parameters="level writer",
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (GROUP, ITEM))],
    law="A single group reduces everything, and one of its items writes the result.",
)

every_nth = rule(
    "every-nth",
    "map@a f xs -> join (map (take 1) (split q (map@a f (join (map (pad 0 (q - 1) clamp) (split 1 xs))))))",
    parameters="q",
    when=["q >= 1"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (4,))],
    law="""Of every q iterations the first does the work: the others would compute copies of its result, which are
    dropped, so a guard keeps them idle.""",
)

name_initial = rule(
    "name-initial",
    "reduce@k f z xs -> let s = z in reduce@k f s xs",
    examples=[Example("λ (xs : 8.f32) (z : f32). reduce (+) (sqrt z) xs")],
    law="The initial value is computed first, and has a name.",
)

name_initial_scan = rule(
    "name-initial-scan",
    "scan@k f z xs -> let s = z in scan@k f s xs",
    examples=[Example("λ (xs : 8.f32) (z : f32). scan (+) (sqrt z) xs")],
    law="name-initial for a scan.",
)

take_slide = rule(
    "take-slide",
    "take m (slide n s xs) -> slide n s (take (s * (m - 1) + n) xs)",
    when=["m >= 1"],
    examples=[Example("λ (xs : 8.f32). take 4 (slide 3 1 xs)")],
    law="The first windows are the windows of the first elements.",
)

drop_slide = rule(
    "drop-slide",
    "drop m (slide n s xs) -> slide n s (drop (s * m) xs)",
    when=["s * m + n <= length xs"],
    examples=[Example("λ (xs : 8.f32). drop 4 (slide 3 1 xs)")],
    law="The windows after the first are the windows of the elements after the first.",
)


@code_rule(
    "double-buffer-components",
    "reduce[l, m]@k f z xs -> reduce[l, m]@k (λacc x. let y = to[memory] (f acc x) in (y.0, y.1)) z xs",
    kinds="reduce",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). reduce[seq] (λ (a, b) x. (b, a)) (ys, ys) xs", (PRIVATE,))],
    law="double-buffer for a tuple: all new components are written elsewhere before an old one is replaced.",
)
def double_buffer_components(term: Term, context: Context, memory: Memory) -> Term | None:
    """A tuple may have any number of components, the notation says one number."""
    del context
    if not isinstance(term.type, Tuple) or term["level"] is None:
        return None
    function, initial, xs = term.args
    count = len(term.type.items)

    def step(acc: Term, x: Term) -> Term:
        return let(to(memory, apply(function, acc, x)), lambda y: tuple_(*[proj(i, y) for i in range(count)]))

    return reduce_(step, initial, xs, term["level"], term["memory"], term["name"])


@code_rule(
    "by-components",
    "e -> (e.0, e.1)",
    kinds="param bound proj const reduce let iterate at op",
    examples=[Example("λ (p : (8.f32, 4.f32)). p")],
    law="A tuple is the tuple of its components.",
)
def by_components(term: Term, context: Context) -> Term | None:
    """A tuple may have any number of components, the notation says one number."""
    del context
    if not isinstance(term.type, Tuple):
        return None
    return tuple_(*[proj(i, term) for i in range(len(term.type.items))])


@code_rule(
    "hoist-reduction",
    "map (λx. C[reduce f z e]) xs -> let s = reduce f z e in map (λx. C[s]) xs",
    kinds="map reduce scan generate",
    when=["e mentions neither x nor a variable bound inside"],
    examples=[Example("λ (xs : 8.f32). map (λx. x / reduce (+) 0 xs) xs")],
    law="A sum that no iteration changes is computed once, before the loop.",
)
def hoist_reduction(term: Term, context: Context) -> Term | None:
    """A context hole cannot be said in the notation: the first such reduction of scalars in the function."""
    del context
    body, binders = below_parameters(term.args[0])
    found = find(body, lambda t: t.kind == "reduce" and isinstance(t.type, Scalar), binders)
    if found is None:
        return None
    return let(found, lambda s: term.with_args((plug(term.args[0], found, s), *term.args[1:])))


@code_rule(
    "hoist-array",
    "C[e] -> let p = e in C[p]",
    kinds=" ".join(PATTERNS),
    parameters="place",
    when=["e is what stands at `place`", "e mentions no variable bound on the way to it"],
    examples=[Example("λ (xs : 8.f32). generate 4 (λi. (scan (+) 0 xs)[2 * i])", ((0, 0, 0),))],
    law="An array that the loops around it do not change has a name in front of them, so that it is computed once.",
)
def hoist_array(term: Term, context: Context, place: tuple[int, ...]) -> Term | None:
    """A context hole cannot be said in the notation; `place` is the path to it."""
    del context
    part, binders = term, 0
    for index in place:
        if index >= len(part.args):
            return None
        binders += part.kind == "lambda"
        part = part.args[index]
    if any(i < binders for i in dangling(part)):
        raise Refused("the array depends on a variable that is bound around it")
    found = shift(part, -binders)
    return let(found, lambda p: plug(term, found, p))


@code_rule(
    "generate-loop",
    "generate n g -> map@name (λi. g i) (generate n (λi. i))",
    kinds="generate",
    parameters="name",
    examples=[Example("generate 8 (λi. f32 i)", ("rows",))],
    law="A generated array is what a loop over the indices makes: it has a level and a memory as any loop.",
)
def generate_loop(term: Term, context: Context, name: str) -> Term | None:
    """The notation takes the names of loops over from others, and here there is none."""
    del context
    assert isinstance(term.type, Array)
    return map_(term.args[0], generate(term.type.size, lambda i: i), name=name)
