"""The derivations of the slides: by rules alone, right at every step, and they reach the programs as printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.errors import RewriteFailed
from lithify.lang.module import Elaborated, read_file
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import array
from lithify.lowering import lower, strategies
from lithify.lowering.loops import name_loops
from lithify.lowering.matrix_multiplication import VERSIONS
from lithify.lowering.strategies import named
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel, host
from lithify.rewrite import Derivation, replay, save
from lithify.rules import all_rules
from lithify.rules.fusion import map_fusion, zip_replicate_right

SLIDES = read_file(Path(__file__).parents[2] / "examples" / "slides" / "matrix_multiplication.lift")
NAMES = [version.name for version in VERSIONS]
# Sizes (rows, depth, columns) and tiles.
CASES = [
    ((16, 8, 24), "n=4, m=8, k=4, l=2"),
    ((7, 5, 11), "n=3, m=4, k=2, l=2"),
    ((9, 4, 6), "n=9, m=5, k=3, l=4"),
    ((1, 1, 1), "n=1, m=1, k=1, l=1"),
    ((3, 5, 2), "n=64, m=64, k=16, l=8"),
]


def program(name: str, sizes: tuple[int, int, int], tiles: dict[str, int] | None = None) -> Elaborated:
    rows, depth, columns = sizes
    return SLIDES[name].elaborate([array(rows, depth, f32), array(depth, columns, f32)], tiles or {})


def derived(name: str, sizes: tuple[int, int, int]) -> Derivation:
    """By the strategy alone, for a device without work-groups."""
    d = Derivation(name_loops(program("matMult", sizes).term), check=True)
    named(name)(d, host())
    return d


def without_names(term: Term) -> Term:
    term = term.with_args(tuple(without_names(a) for a in term.args))
    return term.replace(name=None) if term.kind in ("map", "reduce") else term


def is_product(term: Term) -> bool:
    """A map of a product."""
    body = term.args[0].args[0] if term.kind == "map" else term
    return body.kind == "op" and body["operator"] is OPERATORS["mul"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("sizes", "tiles"), CASES)
@pytest.mark.parametrize("device", [GENERIC_CPU, GENERIC_GPU, host()], ids=str)
def test_every_step_is_right_and_the_kernel_multiplies(
    name: str, sizes: tuple[int, int, int], tiles: str, device: DeviceModel
) -> None:
    product = program("matMult", sizes)
    lowered = lower(product.term, device, strategy=f"{name}({tiles})", check=True)
    rng, (rows, depth, columns) = np.random.default_rng(sum(sizes)), sizes
    a = rng.integers(-4, 4, (rows, depth)).astype(np.float32)
    b = rng.integers(-4, 4, (depth, columns)).astype(np.float32)
    (result,) = run(translate(lowered.term, product.parameters, device=device), {"A": a, "B": b})
    np.testing.assert_array_equal(result, a @ b)


def test_the_tiled_program_is_the_one_printed() -> None:
    tiles = {"n": 4, "m": 8, "k": 2}
    d = derived("tiled(n=4, m=8, k=2)", (12, 6, 16))
    assert without_names(d.term) is program("tiled", (12, 6, 16), tiles).term


def test_the_register_blocked_program_is_the_one_printed() -> None:
    """But for how a product with one value is said: `map (*) (zip xs (replicate n y))` or `map (λx. x * y) xs`."""
    tiles = {"n": 4, "m": 8, "k": 2, "l": 2}
    d = derived("tiled-register-blocked(n=4, m=8, k=2, l=2)", (12, 6, 16))
    printed = Derivation(program("registerBlocked", (12, 6, 16), tiles).term, check=True)
    printed.once(zip_replicate_right).once(map_fusion, is_product)
    assert without_names(d.term) is without_names(printed.term)


def test_the_macro_rule_takes_the_steps_of_the_slides() -> None:
    d = derived("register-blocking(l=3)", (6, 5, 4))
    assert d.names() == [
        "split-join(3)",
        "map-map-interchange",
        "map-fission(map)",
        "map-reduce-interchange",
        "map-map-interchange-left",
        "reduce-map-fusion",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_derivations_are_saved_and_replayed(name: str) -> None:
    d = derived(name, (7, 5, 11))
    assert replay(d.start, save(d), all_rules()).term is d.term


def test_tiles_are_staged_in_local_memory_by_work_groups() -> None:
    term = lower(program("matMult", (64, 32, 64)).term, GENERIC_GPU, strategy="tiled(n=16, m=16, k=8)").term
    text = str(term)
    assert "map[group1]" in text
    assert "map[group0]" in text
    assert text.count("to[local]") >= 2


def test_what_is_no_product_is_refused() -> None:
    with pytest.raises(RewriteFailed, match="tiled is for a program `map"):
        lower(program("matMult", (4, 4, 4)).term.args[1], GENERIC_CPU, strategy="tiled")


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("tilde", "did you mean tiled"),
        ("tiled(x=3)", "x=3 is no parameter of tiled\n.*positive numbers for n, m, k, l"),
        ("tiled(n=0)", "n=0 is no parameter"),
        ("tiled(n)", "'n' is no tuning parameter"),
        ("reduction-1(n=3)", "it takes no parameters"),
    ],
)
def test_bad_names_and_parameters(strategy: str, message: str) -> None:
    with pytest.raises(RewriteFailed, match=message):
        lower(program("matMult", (4, 4, 4)).term, GENERIC_CPU, strategy=strategy)


def test_all_are_listed() -> None:
    assert set(NAMES) < set(strategies())
    assert all(strategy.purpose for strategy in strategies().values())
