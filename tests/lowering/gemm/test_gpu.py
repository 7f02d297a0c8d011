"""Matrix multiplication on GPUs: every step, the kernel evaluator, and OpenCL C run by whatever OpenCL there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.errors import RewriteFailed
from lithify.lang.module import Elaborated, read_text
from lithify.lang.scalars import Scalar, f16, f32, f64
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters, Space
from lithify.machine import H200_OPENCL
from lithify.targets.opencl import OpenCLTarget
from lithify.targets.opencl.oclgrind import check
from tests.lowering.gemm.programs import FORMS, by_name, program_of

# Small matrices have several tiles and parts of tiles.
SMALL = Parameters.parse(
    "mPerBlock=16,nPerBlock=16,kPerBlock=4,mPerThread=4,nPerThread=4,nPerWave=2,"
    "vectorA=1,vectorB=1,paddingA=0,paddingB=0,stages=2,splitK=1"
)
CHOICES = {
    "two stages": {},
    "one stage, rows padded": {"stages": 1, "paddingA": 4},
    "three stages, columns padded": {"stages": 3, "paddingB": 4},
    "in three parts": {"splitK": 3},
    "in two parts, filled up": {"splitK": 2},
    "wide and flat": {"mPerThread": 2, "nPerThread": 8, "nPerWave": 2},
}

# A batch is not split, and where operands are computed nothing is filled up.
UNSPLIT = {"batched": ("in three parts", "in two parts, filled up")}


def _space(program: Elaborated) -> Space:
    found = recognise(name_loops(program.term))
    assert found is not None
    space = found[0].space(found[1], H200_OPENCL)
    assert space is not None
    return space


def _kernels(program: Elaborated, parameters: Parameters | None, *, check: bool = False) -> ir.Program:
    lowered = lower(program.term, H200_OPENCL, parameters=parameters, check=check)
    return translate(lowered.term, program.parameters, device=H200_OPENCL)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_step(form: str, choice: str) -> None:
    """The value after each step, and the kernel: no race, no access out of bounds, nothing read before it is there."""
    program, arguments, expected = program_of(form, 18, 17, 9)
    parameters = SMALL.updated(**CHOICES[choice])
    if _space(program).against(parameters) is not None:
        assert choice in UNSPLIT.get(form, ())
        return
    kernels = _kernels(program, parameters, check=True)
    (result,) = run(kernels, by_name(program, arguments))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("form", ["plain", "right transposed", "epilogue"])
def test_vectors(form: str) -> None:
    """Sizes in whole vectors, but not in whole tiles: no vector is taken apart."""
    program, arguments, expected = program_of(form, 20, 36, 12)
    parameters = SMALL.updated(kPerBlock=8, vectorA=4, vectorB=4 if form != "left transposed" else 1)
    kernels = _kernels(program, parameters)
    (result,) = run(kernels, by_name(program, arguments))
    np.testing.assert_array_equal(result, expected)


@given(
    form=st.sampled_from(sorted(FORMS)),
    sizes=st.tuples(*[st.sampled_from([2, 4, 7, 8, 16, 17, 20, 33, 36])] * 3),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=10, deadline=None)
def test_any_parameters(opencl_device: Any, form: str, sizes: tuple[int, int, int], seed: int) -> None:
    program, arguments, expected = program_of(form, *sizes, seed)
    space, rng = _space(program), np.random.default_rng(seed)
    while True:
        drawn = Parameters({name: values[rng.integers(len(values))] for name, values in space.choices.items()})
        if space.against(drawn) is None and drawn.number("mPerThread") * drawn.number("nPerThread") <= 16:
            break
    _check_compiled(opencl_device, program, arguments, expected, drawn)


@pytest.mark.parametrize("sizes", [(7, 7, 7), (2, 33, 1), (17, 2, 40), (130, 65, 17), (5, 9, 3), (64, 68, 12)])
@pytest.mark.parametrize("form", ["plain", "left transposed", "epilogue", "batched"])
def test_the_default(opencl_device: Any, form: str, sizes: tuple[int, int, int]) -> None:
    program, arguments, expected = program_of(form, *sizes)
    _check_compiled(opencl_device, program, arguments, expected, None)


def _check_compiled(
    device: Any, program: Elaborated, arguments: list[Any], expected: Any, parameters: Parameters | None
) -> None:
    executable = OpenCLTarget(device.platform.name).compile(_kernels(program, parameters))
    out = np.full(expected.shape, np.nan, np.float32)
    executable(*arguments, out=out)
    np.testing.assert_array_equal(out, expected, err_msg=str(parameters))


@pytest.mark.parametrize(("scalar", "sums"), [(f16, f32), (f64, f64)], ids=str)
@pytest.mark.parametrize("sizes", [(18, 17, 9), (20, 36, 8)])
def test_other_types(opencl_device: Any, scalar: Scalar, sums: Scalar, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    text = f"a b . map (λ row . map (λ col . dot (map {sums} row) (map {sums} col)) (transpose b)) a"
    program = read_text(f"x = λ {text}")["x"].elaborate([array(m, k, scalar), array(k, n, scalar)])
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(str(scalar).replace("f", "float")) for shape in ((m, k), (k, n)))
    kernels = _kernels(program, SMALL.updated(kPerBlock=8) if n > 20 else SMALL)
    out = np.full((m, n), np.nan, str(sums).replace("f", "float"))
    OpenCLTarget(opencl_device.platform.name).compile(kernels)(a, b, out=out)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


def test_oclgrind_finds_nothing(oclgrind: str) -> None:
    program, arguments, expected = program_of("epilogue", 18, 20, 9)
    report = check(_kernels(program, SMALL.updated(paddingA=4)), arguments)
    assert not report.findings, "\n\n".join(map(str, report.findings))
    np.testing.assert_array_equal(report.results, expected)


def test_one_barrier_a_step() -> None:
    """What is loaded for the next step is stored after this one has read its tiles: into other slots."""
    program, _, _ = program_of("plain", 32, 32, 32)
    (kernel,) = _kernels(program, SMALL).kernels
    loops = [s for s in statements(kernel.body) if isinstance(s, ir.Loop) and s.name and s.name.endswith(".block")]
    main = max(loops, key=lambda loop: loop.extent.constant or 0)
    assert [isinstance(s, ir.Barrier) for s in main.body].count(True) == 1


def test_invalid_parameters_are_refused_with_the_reason() -> None:
    program, _, _ = program_of("plain", 64, 64, 64)
    for changes, reason in (
        ({"mPerThread": 16, "nPerThread": 16, "mPerBlock": 128, "nPerBlock": 128}, "registers"),
        ({"mPerBlock": 64, "mPerThread": 2, "nPerBlock": 256, "nPerThread": 2}, "items are more than a group has"),
        ({"mPerBlock": 96, "mPerThread": 16}, "24 items do not copy 16 x 4"),
        ({"mPerBlock": 24, "mPerThread": 16}, "mPerThread=16 does not divide mPerBlock=24"),
        ({"nPerWave": 8}, "nPerWave=8 does not divide the 4 items"),
        (
            {"mPerBlock": 128, "nPerBlock": 128, "mPerThread": 8, "nPerThread": 8}
            | {"kPerBlock": 16, "stages": 3, "paddingA": 4},
            "bytes of local memory",
        ),
        ({"mPerThread": 8, "nPerThread": 8, "kPerBlock": 32}, "too long to be written out"),
    ):
        with pytest.raises(RewriteFailed, match=reason):
            lower(program.term, H200_OPENCL, parameters=SMALL.updated(**changes))
    odd, _, _ = program_of("plain", 64, 63, 64)
    with pytest.raises(RewriteFailed, match="vectorB=4 does not divide the rows of B"):
        lower(odd.term, H200_OPENCL, parameters=SMALL.updated(vectorB=4))


def test_the_default_is_valid_and_in_the_space() -> None:
    for sizes in [(2, 2, 1), (7, 7, 7), (64, 1000, 3), (1000, 3, 64), (1024, 1024, 1024), (4095, 4097, 4099)]:
        for form in ("plain", "left transposed", "right transposed"):
            program = program_of(form, 2, 3, 4)[0] if max(sizes) > 2000 else program_of(form, *sizes)[0]
            space = _space(program)
            space.check(space.default)
            assert all(space.default[name] in values for name, values in space.choices.items())


def test_more_cores_get_smaller_tiles() -> None:
    program, _, _ = program_of("plain", 256, 256, 64)
    found = recognise(name_loops(program.term))
    assert found is not None
    blocks = []
    for cores in (4, 64):
        space = found[0].space(found[1], replace(H200_OPENCL, cores=cores))
        assert space is not None
        blocks.append(space.default.number("mPerBlock") * space.default.number("nPerBlock"))
    assert blocks[0] > blocks[1]
