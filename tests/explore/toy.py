"""A small family to search: `map f xs` in blocks. And candidates that fail in every way that there is."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from lithify.explore.candidates import Candidates, Features
from lithify.explore.trial import Task
from lithify.kernel.ir import Program
from lithify.lang.build import const, map_, mul, param
from lithify.lang.errors import RewriteFailed
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.lowering import Lowered, lower
from lithify.lowering.tuning import Family, Parameters, Problem, Space
from lithify.machine import DeviceModel, host
from lithify.rewrite import Derivation
from lithify.rules.algorithmic import split_join
from lithify.targets.base import Executable
from lithify.targets.cpu import CpuTarget


class Blocks(Family):
    """Maps over an array of scalars, in blocks; blocks of 7 are refused, larger ones than the array are invalid."""

    name = "blocks"

    def recognise(self, program: Term) -> Problem | None:
        if program.kind != "map" or not isinstance(program.type, Array) or isinstance(program.type.element, Array):
            return None
        n = program.type.size.constant
        return None if n is None else Problem("blocks", f"blocks -n {n}", {"n": n}, {"c": str(program.type.element)})

    def space(self, problem: Problem, model: DeviceModel) -> Space | None:
        n = problem.sizes["n"]

        def against(p: Parameters) -> str | None:
            if p.number("block") > n:
                return f"blocks of {p['block']} are longer than {n}"
            return None

        choices = {"block": (1, 2, 4, 7, 8, 16, 64, 256), "order": ("up", "down")}
        return Space(choices, Parameters({"block": 4, "order": "up"}), against)

    def derive(self, derivation: Derivation, problem: Problem, parameters: Parameters, model: DeviceModel) -> None:
        if parameters["block"] == 7:
            raise RewriteFailed("seven brings no luck")
        derivation.apply(split_join(parameters["block"]))


class FaultyTarget(CpuTarget):
    """The CPU, where code that was made for the keys `hangs` and `crashes` does that when it runs."""

    key = ""

    def prepare(self, program: Program) -> bytes:
        return self.key.encode().ljust(8) + super().prepare(program)

    def finish(self, data: bytes) -> Executable:
        executable = self.load(data[8:])
        return _Faulty(executable, data[:8].decode().strip())


class _Faulty(Executable):
    def __init__(self, executable: Executable, fault: str) -> None:
        self.executable, self.interface, self.fault = executable, executable.interface, fault

    def __call__(self, *arguments: Any, out: Any = None, sizes: Any = None) -> Any:
        if self.fault == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.fault == "hangs":
            time.sleep(60)
        return None if self.fault == "idle" else self.executable(*arguments, out=out)

    def time(self, arguments: Any, repetitions: int) -> list[float]:
        return self.executable.time(arguments, repetitions)

    def serialize(self) -> bytes:
        return self.executable.serialize()


def times(factor: float, xs: Term) -> Term:
    """Every element of an array times a number."""
    return map_(lambda x: mul(x, const(factor, f32)), xs)


class Faults(Candidates):
    """`default` and `other` are right; the other keys say what goes wrong with them."""

    KEYS = ("default", "other", "invalid", "refused", "broken", "wrong", "idle", "slow-build", "dead-build", "hangs",
            "crashes")  # fmt: skip

    def __init__(self, target: FaultyTarget, size: int = 1000) -> None:
        self.target, self.model = target, host()
        self.parameters = (("xs", Array(size, f32)),)
        self.xs = param("xs", Array(size, f32))
        self.term = times(2.0, self.xs)

    def __len__(self) -> int:
        return len(self.KEYS)

    def __iter__(self) -> Iterator[str]:
        return iter(self.KEYS)

    def against(self, key: str) -> str | None:
        return "this is candidate 3 of 11" if key == "invalid" else None

    def lower(self, key: str) -> Lowered:
        self.target.key = key
        if key == "refused":
            raise RewriteFailed("no rule applies")
        if key == "broken":
            raise KeyError("a defect")
        if key == "slow-build":
            time.sleep(60)
        if key == "dead-build":
            os.kill(os.getpid(), signal.SIGKILL)
        return lower(times(3.0, self.xs) if key == "wrong" else self.term, self.model)

    def features(self, keys: Sequence[str]) -> Features:
        numbers = np.array([[self.KEYS.index(key) / len(self.KEYS)] for key in keys])
        return Features(numbers, np.zeros(len(keys)))

    def task(self) -> Task:
        xs = np.linspace(-1, 1, 1000, dtype=np.float32)
        return Task(partial(FaultyTarget, 1), (xs,), (2.0 * xs.astype(np.float64),), (1e-6,))
