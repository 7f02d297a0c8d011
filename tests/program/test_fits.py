"""Programs over sizes that are not known: what must hold of them is said, and what can never hold is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.program.fits import fit_of

n, m = lf.sizes("n m")

PROGRAMS = lf.parse("""
halves (xs : n.f32) = map sum (split 2 xs)
rows (xs : n.m.f32) = map sum (split 4 (join xs))
blocks (xs : n.f32) = map sum (split b xs)
windows (xs : n.f32) = map sum (slide 3 1 xs)
both (xs : n.f32) (ys : m.f32) = sum (map (*) (zip xs ys))
product (a : n.m.f32) (b : k.j.f32) = map (λ row . map (λ col . dot row col) (transpose b)) a
third (xs : n.f32) = xs[2]
element (xs : n.f32) (i : idx[m]) = xs[i]
order (xs : n.f32) = reorder (stride 2) xs
taken (xs : n.f32) = take 4 xs
several (xs : n.f32) = map sum (split 3 (take 4 (join (split 2 xs))))
sides (xs : n.m.f32) (ys : k.m.f32) = concat (xs, transpose ys)
free (xs : n.f32) = sum xs
halvesOdd (xs : n.f32) = split 2 (concat xs (concat xs (replicate 1 (f32 0))))
fives (xs : 5.f32) = split 2 xs
longer (xs : n.f32) = slide (n + 2) 1 xs
apart (xs : n.f32) = map (+) (zip xs (pad 0 1 0 xs))
beyond (xs : n.f32) = xs[n]
types (xs : n.f32) = map (λ x . x + true) (join (split 2 xs))
""")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("halves", "n.f32 -> ((n) / 2).f32   (fits where 2 divides n)"),
        ("rows", "n.m.f32 -> ((m*n) / 4).f32   (fits where 4 divides m*n)"),
        ("blocks", "n.f32 -> ((n) / b).f32   (fits where b divides n; a call gives b)"),
        ("windows", "n.f32 -> (n - 2).f32   (fits where 2 <= n)"),
        ("both", "n.f32 -> m.f32 -> f32   (fits where n = m)"),
        ("product", "n.m.f32 -> k.j.f32 -> n.j.f32   (fits where m = k)"),
        ("third", "n.f32 -> f32   (fits where 2 < n)"),
        ("element", "n.f32 -> idx[m] -> f32   (fits where m - 1 < n)"),
        ("order", "n.f32 -> n.f32   (fits where 2 divides n)"),
        ("taken", "n.f32 -> 4.f32   (fits where 4 <= n)"),
        ("free", "n.f32 -> f32"),
    ],
)
def test_conditions_on_sizes_are_said(name: str, said: str) -> None:
    assert str(fit_of(PROGRAMS[name], {})) == said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("several", "3 divides 4 does not hold"),
        ("halvesOdd", "does not hold"),
        ("fives", "2 divides 5 does not hold"),
        ("longer", r"\(n \+ 2\) <= n \+ 1 does not hold"),
        ("apart", r"different lengths: n and n \+ 1"),
        ("beyond", "index n is outside"),
        ("types", "different types"),
    ],
)
def test_what_can_never_hold_is_refused(name: str, message: str) -> None:
    with pytest.raises(lf.TypeMismatch, match=message):
        fit_of(PROGRAMS[name], {})


def test_sizes_that_are_given_decide() -> None:
    assert fit_of(PROGRAMS["blocks"], {"b": 3}).conditions == ("3 divides n",)
    assert fit_of(PROGRAMS["blocks"], {"b": 1}).conditions == ()


@pytest.mark.parametrize("name", ["halves", "windows", "both", "third", "order"])
def test_what_was_assumed_is_not_believed_later(name: str) -> None:
    """The same program is built in both ways, one after the other: terms are shared where they are the same."""
    program = PROGRAMS[name]
    for _ in range(2):
        kept = fit_of(program, {})  # and what it refers to
        with pytest.raises(lf.TypeMismatch):
            program.term()
        assert kept.conditions


def test_the_values_of_the_sizes_are_checked_at_a_call() -> None:
    assert PROGRAMS["halves"](np.ones(4, np.float32)).tolist() == [2, 2]
    with pytest.raises(lf.TypeMismatch, match="2 divides 5"):
        PROGRAMS["halves"](np.ones(5, np.float32))


def test_programs_of_python() -> None:

    @lf.program
    def halves(xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type, no-untyped-def]
        return xs >> lf.split(m) >> lf.map(lf.sum)

    assert str(fit_of(halves, {"m": 2})) == "n.f32 -> ((n) / 2).f32   (fits where 2 divides n)"
    assert str(fit_of(halves, {})) == "n.f32 -> ((n) / m).f32   (fits where m divides n; a call gives m)"
