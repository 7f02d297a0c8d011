"""The family of matrix multiplications: what a program's problem is, and which strategy each kind of device has."""

from __future__ import annotations

from lithify.lang.errors import RewriteFailed
from lithify.lang.scalars import SCALARS
from lithify.lang.term import Term
from lithify.lowering.gemm import cpu, cpu_features, cpu_space, gpu, gpu_features, gpu_space
from lithify.lowering.gemm.operands import fills_up, stored
from lithify.lowering.gemm.problem import Product, normal_form, problem_of, product_in
from lithify.lowering.tuning import Columns, Family, Numbers, Parameters, Problem, Space
from lithify.machine import DeviceModel
from lithify.rewrite import Context, Derivation, Failure


class Gemm(Family):
    """Matrix multiplications with work before and after: see `problem`."""

    name = "gemm"

    def recognise(self, program: Term) -> Problem | None:
        if not _may_be(program):
            return None
        normal = normal_form().run(program, Context())
        assert not isinstance(normal, Failure)
        product = product_in(normal)
        if product is None:
            return None
        inner, plain = stored(normal, product)
        return problem_of(product, inner, plain=plain, fills_up=fills_up(inner.reduction))

    def space(self, problem: Problem, model: DeviceModel) -> Space | None:
        if min(problem.sizes.values()) < 1:
            return None
        if "-whole" in problem.line and SCALARS[problem.scalars["acc"]].is_complex:
            return None
        if model.kind != "gpu":
            return cpu_space.space(problem, model) if cpu_space.pays(problem, model) else None
        return gpu_space.space(problem, model) if gpu_space.fits(problem) else None

    def features(self, problem: Problem, model: DeviceModel, columns: Columns) -> dict[str, Numbers]:
        of = gpu_features.features if model.kind == "gpu" else cpu_features.features
        return of(problem, model, columns)

    def derive(self, derivation: Derivation, problem: Problem, parameters: Parameters, model: DeviceModel) -> None:
        derivation.apply(normal_form())
        found = self._product(derivation)
        if model.kind == "gpu":
            gpu.derive(derivation, found, problem, parameters)
        else:
            cpu.derive(derivation, found, parameters, model)

    def _product(self, derivation: Derivation) -> Product:
        product = product_in(derivation.term)
        if product is None:
            raise RewriteFailed("there is no matrix multiplication in this program")
        return product


def _may_be(program: Term) -> bool:
    """A quick look: is there a reduction under two maps?"""
    seen: set[tuple[int, int]] = set()
    stack = [(program, 0)]
    while stack:
        t, maps = stack.pop()
        if (t.id, maps) in seen:
            continue
        seen.add((t.id, maps))
        if t.kind == "reduce" and maps >= 2:
            return True
        stack += [(a, min(2, maps + (t.kind == "map" and i == 0))) for i, a in enumerate(t.args)]
    return False
