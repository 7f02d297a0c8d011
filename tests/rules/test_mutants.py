"""The checker of rules rejects wrong rules: among them laws that other systems got wrong."""

from __future__ import annotations

import pytest

from lithify.rewrite import rule
from tests.rules.laws import INSTANCES, wrong_instance

WRONG = {
    # components and arguments changed round
    "fusion in the wrong order": ("map f (map g xs) -> map (λx. g (f x)) xs", "", ()),
    "one application too few": ("map f (map g xs) -> map f xs", "", ()),
    "interchange without transposing": ("map (λa. map (λb. e a b) B) A -> map (λb. map (λa. e a b) A) B", "", ()),
    "interchange with the arguments changed round": (
        "map (λa. map (λb. e a b) B) A -> T (map (λb. map (λa. e b a) A) B)", "", ()),
    "map-reduce with accumulator and element changed round": (
        """map (λa. reduce f z (e a)) A
           -> reduce (λacc y. map (λp. f p.1 p.0) (zip acc y)) (replicate (length A) z) (T (map e A))""", "", ()),
    "map-reduce without the transpose": (
        """map (λa. reduce f z (e a)) A
           -> reduce (λacc y. map (λp. f p.0 p.1) (zip acc y)) (replicate (length A) z) (map e A)""", "", ()),
    "zip-aware map-reduce with the pair changed round": (
        """map (λa. reduce f z (zip (p a) q)) A
           -> reduce (λacc y. map (λc. f c.0 (y.1, c.1)) (zip acc y.0)) (replicate (length A) z)
                     (zip (T (map p A)) q)""", "", ()),
    # reductions
    "blocks that start with the initial value": (
        "reduce f z xs -> reduce (λacc b. f acc (reduce f z b)) z (split n xs)", "n",
        ("n | length xs", "associative f")),
    "blocks added from the other side": (
        "reduce f z xs -> reduce (λacc b. f (reduce f e b) acc) z (split n xs)", "n",
        ("n | length xs", "associative f", "neutral e f")),
    "lanes without commutativity": (
        """reduce f z xs -> reduce f z (reduce (λacc v. map (λp. f p.0 p.1) (zip acc v)) (replicate n e)
                                               (split n xs))""", "n",
        ("n | length xs", "associative f", "neutral e f")),
    "blocks without associativity": (
        "reduce f z xs -> reduce (λacc b. f acc (reduce f e b)) z (split n xs)", "n",
        ("n | length xs", "commutative f", "neutral e f")),
    "padding with an element that counts": (
        "reduce f z xs -> reduce f z (pad 0 (-length xs % n) clamp xs)", "n", ("length xs >= 1",)),
    "reordering without commutativity": (
        "reduce f z xs -> reduce f z (reindex g xs)", "g",
        ("associative f", "invertible g", "length xs == source(g)")),
    "scan taken for exclusive": (
        "scan f z (concat xs ys) -> concat (scan f z xs) (scan f z ys)", "", ()),
    # windows (laws 5 and 6 of the list of known-wrong ones)
    "windows before a split, right for step 1 only": (
        "split k (slide n s xs) -> map (slide n s) (slide (k + n - s) k xs)", "", ("k + n - s >= n",)),
    "overlapped tiling with tiles a unit apart, right for step 1 only": (
        "slide n s xs -> take ((length xs - n) // s + 1) (join (map (slide n s) (slide u (u + 1 - n) xs)))", "u",
        ("u >= n", "u <= length xs")),
    "overlapped tiling with disjoint tiles": (
        "slide n s xs -> join (map (slide n s) (split u xs))", "u", ("u >= n", "u | length xs")),
    # reordering
    "a reordering taken for its own inverse": (
        "map f xs -> reindex g (map f (reindex g xs))", "g", ("length xs == source(g)",)),
    "gather moved through a map as scatter": (
        "map f (gather ids xs) -> scatter permutation ids (map f xs)", "", ()),
    "a reordering undone by any other": ("reindex h (reindex g xs) -> xs", "", ()),
    # right for square arrays only
    "transpose forgotten where both lengths agree": (
        "T (map (map f) X) -> map (map f) X", "", ("length X == width X",)),
    "transpose forgotten": ("T (map (map f) X) -> map (map f) X", "", ()),
    "rows split for columns": ("split n (T X) -> T (map (split n) X)", "", ()),
    # index shifts and slices
    "a slice from the wrong end": ("take m (drop n xs) -> take m (drop m xs)", "", ("m <= length xs - m",)),
    "a prefix of a join, by rows that do not divide it": (
        "take n (join X) -> join (take (n // width X) X)", "", ()),
    "padding moved past a map with the old fill": (
        "map f (pad l r (fill c) xs) -> pad l r (fill c) (map f xs)", "", ()),
    # a merge collapsed across a broadcast
    "replicated rows joined to replicated elements": (
        "join (replicate n xs) -> join (map (replicate n) xs)", "", ()),
    "a reduction lifted out of an operator that does not distribute": (
        "reduce (λacc x. add acc (max c x)) z xs -> max c (reduce (λacc x. add acc x) z xs)", "", ()),
    "sums of separable weights, transposed": (
        """reduce (λacc p. add acc (mul p.0 p.1)) z (zip (join (map (λa. map (λb. mul a b) v) u)) (join X))
           -> reduce (λacc q. add acc (mul q.0 q.1)) z
                     (zip v (map (λrow. reduce (λacc p. add acc (mul p.0 p.1)) o (zip u row)) X))""", "",
        ("zero o z", "length u == length v")),
    # more than one element counted or lost
    "the first element counted twice": ("reduce f z xs -> f z (reduce f z xs)", "", ("associative f",)),
    "iterate once too often": ("iterate n f x -> f (iterate n f x)", "", ()),
    "a let moved over the variable it shadows": ("let x = e in b x -> let x = b e in b x", "", ()),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_rejects(name: str) -> None:
    text, parameters, conditions = WRONG[name]
    wrong = rule(
        "separate-convolution" if "separable" in name else name,
        text,
        parameters=parameters,
        when=conditions,
        law="none",
    )
    reason = wrong_instance(wrong, INSTANCES)
    assert reason is not None, f"the checker takes this for a law: {text}"
    assert "no instance" not in reason, reason
