"""Programs that random generation came upon, each of a kind that was refused or wrong once: all devices, all layouts.

Each is a text and the types of its arguments.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.evaluate import evaluate
from lithify.explore.comparison import relative_difference
from lithify.lang.scalars import SCALARS
from lithify.program.arguments import flatten, read_type
from lithify.program.check import sample, tolerance_of

PROGRAMS = {
    # the element of an array of one that lies in memory is read, not written by a loop
    "first of one": ("p (xs : n.i8) = map (λ w . reduce max w[0] w) (slide 1 3 (pad 3 0 1 xs))", ["16.i8"]),
    "first of one, twice": ("p (xs : n.f32) = map (λ w . (w[0], (map (* 2) w)[0])) (split 1 xs)", ["40.f32"]),
    "first of one, bound": ("p (xs : n.f32) = let y = (take 1 xs)[0] in map (* y) xs", ["5.f32"]),
    # rows that are computed and read twice are made once, whatever reads them
    "two readers of a row": ("p (a : n.m.f32) = map (λ r . (r, reverse r)) (map (map (+ 1)) a)", ["7.33.f32"]),
    "two readers of a column": (
        "p (a : n.m.f32) = unzip (map (λ r . (r[0], r)) (drop 3 (split 7 (join (transpose (map (map (* 2)) a))))))",
        ["7.33.f32"],
    ),
    "two readers of rows below a let": (
        "p (a : n.m.f32) = map (λ r . (r[0], r)) (let v = a in map (λ (x, y) . map (+) (zip x y)) (zip v (reverse v)))",
        ["7.2.f32"],
    ),
    "two readers of rows that are computed below layouts": (
        "p (a : n.m.f32) = map (λ r . (r[0], r)) (transpose (map reverse (transpose (map (map (* 2)) a))))",
        ["9.5.f32"],
    ),
    # a memory that is asked for where the result is written anyway
    "a result on the heap": ("p (xs : n.f32) = to[heap] (map (* 2) xs)", ["40.f32"]),
    # types of parameters nest as they like
    "nested pairs": (
        "p (ps : n.(f32, (f32, (f32, f32)))) = map (λ (a, (b, (c, d))) . a + d) ps",
        ["7.(f32, (f32, (f32, f32)))"],
    ),
    "rows of nested pairs": (
        "p (ps : n.m.(f32, (f32, f32))) = map (λ r . reduce (+) 0 (map (λ (a, (b, c)) . a * c) r)) ps",
        ["3.7.(f32, (f32, f32))"],
    ),
    # elements that are updated atomically are not written by the lanes of a vector
    "histogram": ("p (ids : m.idx[9]) (xs : m.i32) = scatter[add] ids xs", ["100.idx[9]", "100.i32"]),
    "histogram of what is computed": (
        "p (ids : m.idx[9]) (xs : m.f32) = map (* 2) (scatter[add] ids (map (λ x . x * x) xs))",
        ["100.idx[9]", "100.f32"],
    ),
    "large histogram": ("p (ids : m.idx[9]) (xs : m.i32) = scatter[max] ids xs", ["100000.idx[9]", "100000.i32"]),
    "histogram of sums": (
        "p (ids : m.idx[9]) (xs : m.i64) = scatter[max] ids (scan (+) 0 xs)",
        ["254.idx[9]", "254.i64"],
    ),
    "histogram of a histogram": (
        "p (a : n.k.i32) (is : k.idx[16]) (js : 16.idx[2]) = map (λ xs . scatter[min] js (scatter[add] is xs)) a",
        ["3.5.i32", "5.idx[16]", "16.idx[2]"],
    ),
    "histograms of rows, one after another": (
        "p (a : n.k.i32) (is : k.idx[4]) (js : 12.idx[5]) = scatter[max] js (join (map (scatter[add] is) a))",
        ["3.5.i32", "5.idx[4]", "12.idx[5]"],
    ),
    "histogram in private memory": (
        "p (a : n.m.f64) (ids : m.idx[16]) = map (λ x . map (λ y . y * y) (scatter[add] ids x)) a",
        ["17.5.f64", "5.idx[16]"],
    ),
    "histograms in the lanes of vectors": (
        "p (a : n.m.f64) (ids : m.idx[3]) = map (λ x . sum (map (λ y . y * y) (scatter[add] ids x))) a",
        ["17.5.f64", "5.idx[3]"],
    ),
    "complex histograms in lanes": (
        "p (a : n.m.complex64) (ids : m.idx[3]) = scan (+) 0 (map (λ x . sum (scatter[add] ids x)) a)",
        ["17.5.complex64", "5.idx[3]"],
    ),
    "histogram outside of all loops": (
        "p (xs : n.i64) (ids : n.idx[1]) = reduce (λ a x . map (+) (zip a x)) [0] (split 1 (scatter[xor] ids xs))",
        ["33.i64", "33.idx[1]"],
    ),
    # one element of a vector, which the other lanes leave alone
    "the first, the other way round": ("p (xs : n.f32) = (xs, reverse (take 1 xs))", ["32.f32"]),
    "the first of computed rows": ("p (a : n.m.complex64) = reverse (take 1 (map (* 2) a[1]))", ["2.33.complex64"]),
    # indices in memory that a border is computed of
    "gather beyond the ends": (
        "p (ids : m.idx[49]) (xs : 15.u32) = gather ids (pad 1 33 clamp xs)",
        ["32.idx[49]", "15.u32"],
    ),
    "gather from mirrors": (
        "p (ids : m.idx[49]) (xs : 15.f32) = gather ids (pad 1 33 mirror xs)",
        ["32.idx[49]", "15.f32"],
    ),
    # windows of an array that is one element too short for any
    "no windows": ("p (xs : n.f32) = map (reduce (+) 0) (slide 3 1 (pad 1 1 0 xs))", ["0.f32"]),
    "no windows, one too few": ("p (xs : n.i32) = map (λ w . w[0] - w[4]) (slide 5 2 xs)", ["3.i32"]),
    # what the function of a generated array computes that does not depend on the index is stored once, before
    "a generated reader of mirrored sums": (
        "p (xs : n.f32) = map (* 2) (generate 100 (λ i . (pad 32 67 mirror (map sum (slide 2 1 xs)))[130 - i]))",
        ["100.f32"],
    ),
    "a generated reader of a scan": (
        "p (xs : n.f32) = sum (generate 33 (λ i . (scan (+) 0 xs)[i * 2] * f32 i))",
        ["100.f32"],
    ),
    "a scan that depends on the outer index only": (
        "p (xs : n.f32) = generate 5 (λ i . generate 40 (λ j . (scan (+) (f32 i) xs)[j]))",
        ["40.f32"],
    ),
    # what depends on it makes the generated array a loop
    "generated sums under a vector loop": (
        "p (xs : n.f32) = map (* 2) (generate 100 (λ i . sum (map (* f32 i) xs)))",
        ["33.f32"],
    ),
    "generated elements of what depends on the index": (
        "p (xs : n.f32) = map (* 2) (generate 100 (λ i . (pad 32 67 mirror (map (+ f32 i) xs))[130 - i]))",
        ["100.f32"],
    ),
    "generated rows that are copied in vectors and a rest": (
        "p (xs : n.f32) = generate 10 (λ i . map (* 2) (scan (+) 0 xs))",
        ["100.f32"],
    ),
    "generated pairs, of which the rows are copied": (
        "p (xs : n.f64) = (unzip (map (λ v . (generate 33 (λ i . xs[34 - i]), map (+ v) (take 33 xs))) (take 4 xs))).1",
        ["40.f64"],
    ),
    # a name for a view of what is computed on the way
    "a view with a name": (
        "p (a : n.m.f32) = map (λ r . let v = reverse r in v) (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    "a view with a name, read twice": (
        "p (a : n.m.f32) = map (λ r . let v = reverse r in map (+) (zip v (reverse v)))"
        " (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    "a view with a name and one of it": (
        "p (a : n.m.f32) = map (λ r . let v = reverse r in let w = take 3 v in v[0] + w[1] + sum v)"
        " (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    "a view with a name in a reduction": (
        "p (a : n.m.f32) = reduce (λ s r . let v = reverse r in map (+) (zip v s)) (replicate 7 (0 : f32))"
        " (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    "a view with a name in a scan": (
        "p (a : n.m.f32) = scan (λ s r . let v = reverse r in map (+) (zip v s)) (replicate 7 (0 : f32))"
        " (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    # rows that are computed on the way and read twice through loops and views
    "windows of a computed column": (
        "p (a : n.m.f32) = map (λ r . map sum (slide 3 1 r)) (transpose (map (map (* 2)) a))",
        ["7.33.f32"],
    ),
    "rows of a component, each read twice": (
        "p (a : 2.(f32, n.m.i32)) = (unzip (iterate 2 (map (λ (x, y) . (x, map (λ r . map (+) (zip r r)) y))) a)).1",
        ["2.(f32, 16.8.i32)"],
    ),
    "rows that the elements do not change": (
        "p (xs : n.f32) (a : k.m.f32) (ps : l.f32) ="
        " map (λ x . pad 3 0 x[0] ps) (map (λ x . a) (map (λ x . max x xs[0]) xs))[3]",
        ["4.f32", "10.2.f32", "14.f32"],
    ),
    "computed rows around others": (
        "p (a : n.m.f32) (b : l.n.m.f32) = pad 2 3 (map (map (* 2)) a) b",
        ["5.17.f32", "3.5.17.f32"],
    ),
    # an array that no iteration changes is computed once, whatever the loops are
    "a scan that no iteration changes": (
        "p (xs : n.f32) (a : m.n.f32) = map (map (λ x . x * (scan (+) 0 xs)[3])) a",
        ["300.f32", "7.300.f32"],
    ),
    "a scan that a reduction does not change": (
        "p (xs : n.i32) = reduce (λ a x . max a x + (scan (+) 0 xs)[3]) 0 xs",
        ["300.i32"],
    ),
    "a name for a pair, outside of all loops": (
        "p (x : (f32, f32)) (ys : n.f32) (zs : m.f32) ="
        " let v = (x.0, reverse ys) in map (λ z . reduce min v.0 v.1 + z) (replicate 33 zs[0])",
        ["(f32, f32)", "6.f32", "9.f32"],
    ),
    "a scan that reads its computed start twice": (
        "p (z : m.f32) (xs : n.f32) = scan (λ s x . map (+) (zip s (reverse s))) (map (* 2) z) xs",
        ["33.f32", "5.f32"],
    ),
    # a scan of rows makes each from the one before, so all of them have to be kept
    "a part of a scan of rows": (
        "p (a : n.m.f32) (z : m.f32) = take 5 (scan (λ s r . map (+) (zip s r)) z a)",
        ["9.33.f32", "33.f32"],
    ),
    "a part of the rows of a scan, joined": (
        "p (a : n.m.f32) (z : m.f32) = drop 2 (join (scan (λ s r . map (+) (zip s r)) z a))",
        ["9.5.f32", "5.f32"],
    ),
    "a part of each row of a scan": (
        "p (a : n.m.f32) (z : m.f32) = map (take 3) (scan (λ s r . map (+) (zip s r)) z a)",
        ["9.5.f32", "5.f32"],
    ),
    "parts of scans of rows in a loop": (
        "p (a : n.k.m.f32) (z : m.f32) = map (λ b . drop 1 (transpose (scan (λ s r . map (+) (zip s r)) z b))) a",
        ["3.9.5.f32", "5.f32"],
    ),
    # the element of an array of one that is computed, wherever it stands
    "the only element as a start": (
        "p (xs : n.f32) = reduce (+) (scan (+) 1 (take 1 xs))[0] xs",
        ["17.f32"],
    ),
    "the only element under a let": (
        "p (xs : n.f32) (ys : 1.f32) = scan (λ (a, b) x . (a + x, b)) (0, (let v = xs in map (* 2) ys)[0]) xs",
        ["17.f32", "1.f32"],
    ),
    "the only element with a name": (
        "p (a : n.m.f32) = map (λ r . let x = (scan (+) 0 (take 1 r))[0] in map (* x) r) a",
        ["7.33.f32"],
    ),
    "the only element in a pair in a pair": ("p (xs : n.f32) = ((reduce max 0 xs, xs[1]), sum xs)", ["3.f32"]),
    "the only element beside what it reads": (
        "p (xs : n.f32) = reduce (λ (a, b) x . ((scan (λ s y . s + y + b) x (take 1 xs))[0], a)) (xs[0], xs[1]) xs",
        ["7.f32"],
    ),
    "a scan from a sum": ("p (xs : n.i32) = zip (map (* 2) xs) (scan (+) (reduce (+) 0 xs) xs)", ["3.i32"]),
    "histograms in lanes, of what is scanned": (
        "p (xs : n.f64) (ids : m.idx[17]) (ys : m.f64) = map (λ x . sum (scatter[add] ids (scan (+) x ys))) xs",
        ["33.f64", "1.idx[17]", "1.f64"],
    ),
    "no windows in rows": (
        "p (a : n.m.f32) = map (map (reduce (+) 0)) (map (λ r . slide 3 1 (pad 1 1 2 r)) a)",
        ["4.0.f32"],
    ),
}


def expected(program: Any, arguments: list[Any]) -> list[np.ndarray[Any, Any]]:
    elaborated = program.specialise(*arguments).elaborated
    names = [name for name, _ in elaborated.parameters]
    return [np.asarray(leaf) for leaf in flatten([evaluate(elaborated.term, dict(zip(names, arguments, strict=True)))])]


def case(text: str, types: list[str], device: str, request: pytest.FixtureRequest) -> tuple[Any, list[Any], list[Any]]:
    """A program, arguments of such types, and its results by the definition; skips where the device is none."""
    if device == "opencl":
        request.getfixturevalue("opencl_device")
    program = lf.parse(text)["p"]
    random = np.random.default_rng(3)
    arguments = [sample(read_type(t), random) for t in types]
    return program, arguments, expected(program, arguments)


@pytest.mark.parametrize("device", ["cpu", "c", "opencl"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_definition_says(name: str, device: str, request: pytest.FixtureRequest) -> None:
    text, types = PROGRAMS[name]
    program, arguments, wanted = case(text, types, device, request)
    allowed = max(tolerance_of(SCALARS[word]) for t in types for word in re.findall(r"\w+", t) if word in SCALARS)
    for found, leaf in zip(flatten([program.on(device)(*arguments)]), wanted, strict=True):
        assert np.shape(found) == leaf.shape
        assert leaf.size == 0 or relative_difference(np.asarray(found), leaf) <= allowed


# compiled for any size: accumulators of unknown length are updated in place, in whole vectors and a rest
FOR_ANY_SIZE = {
    "sums of rows": ("p (z : m.f32) (xs : n.f32) = reduce (λ s x . map (+ x) s) z xs", ["37.f32", "11.f32"]),
    "sums of rows, read": (
        "p (z : m.f32) (xs : n.f32) = let c = reduce (λ s x . map (+ x) s) z xs in map (+ sum c) xs",
        ["37.f32", "11.f32"],
    ),
    "pairs of sums, of short rows": (
        "p (z : m.(f32, f32)) (xs : n.f32) = reduce (λ s x . map (λ (a, b) . (a + x, max b x)) s) z xs",
        ["3.(f32, f32)", "11.f32"],
    ),
    "a scan from a computed row": (
        "p (z : m.f32) (xs : n.f32) = scan (λ s x . map (+ x) s) (map (* 2) z) xs",
        ["37.f32", "11.f32"],
    ),
    "sums in a generated array": (
        "p (z : m.f64) (xs : n.f64) = generate 3 (λ i . sum (reduce (λ s x . map (λ v . v + x * f64 i) s) z xs))",
        ["40.f64", "5.f64"],
    ),
}


@pytest.mark.parametrize("device", ["cpu", "c", "opencl"])
@pytest.mark.parametrize("name", FOR_ANY_SIZE)
def test_for_any_size(name: str, device: str, request: pytest.FixtureRequest) -> None:
    program, arguments, wanted = case(*FOR_ANY_SIZE[name], device, request)
    for found, leaf in zip(flatten([program.for_any_size().on(device)(*arguments)]), wanted, strict=True):
        assert relative_difference(np.asarray(found), leaf) <= tolerance_of(SCALARS["f32"])
