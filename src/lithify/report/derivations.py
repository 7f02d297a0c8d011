"""Derivations as pages of documentation: every step with its rule, the law that makes it true, and the program after.

The pages are made from the code, so they say what it does; a test compares those in `docs/derivations` with it. Devices
are models with fixed facts: the pages do not depend on the machine that makes them.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from lithify.explore.problems import read_problem
from lithify.lang.build import add, const, map_, mul, param, proj, reduce_, transpose, zip_
from lithify.lang.printer import show
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import array
from lithify.lowering import lower, matrix_multiplication, reduction
from lithify.lowering.loops import name_loops
from lithify.lowering.strategies import named
from lithify.machine import GENERIC_GPU, DeviceModel
from lithify.machine.host import CpuFacts, cpu_model
from lithify.machine.memory import Cache
from lithify.program.explain import summary
from lithify.program.module import parse
from lithify.rewrite import Derivation
from lithify.rewrite.derivation import places

_WIDTH = 100
_TEXT_WIDTH = 110
# Programs of more lines are shown around what a step has changed.
_LONG, _AROUND = 40, 2
_LEFT_OUT = "  ..."
_CACHES = (Cache(1, 32 << 10, 64), Cache(2, 1 << 20, 64), Cache(3, 32 << 20, 64))


@dataclass(frozen=True)
class Page:
    """What a page shows: a strategy's steps on a program, or all steps of the default lowering where there is none."""

    name: str
    title: str
    text: str
    program: Callable[[], Term]
    model: Callable[[], DeviceModel]
    strategy: str | None = None


@cache
def some_cpu() -> DeviceModel:
    """A CPU with fixed facts: eight cores, 256-bit vectors."""
    return cpu_model(CpuFacts("a CPU with AVX2", "x86_64", frozenset({"avx2", "fma"}), 8, _CACHES, 3e9, 16 << 30))


def _product() -> Term:
    """Matrix multiplication as the slides write it, with names for its loops."""
    a, b = param("A", array(1024, 512, f32)), param("B", array(512, 1024, f32))

    def dot(row: Term, column: Term) -> Term:
        products = map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(row, column), name="k")
        return reduce_(add, const(0, f32), products, name="k")

    return map_(lambda row: map_(lambda column: dot(row, column), transpose(b), name="n"), a, name="m")


def _sum() -> Term:
    return reduce_(add, const(0, f32), param("xs", array(1 << 20, f32)), name="k")


def _gemm() -> Term:
    problem = read_problem("gemm -t f32 -transA false -transB false -g 1 -m 1024 -n 1024 -k 1024")
    program = parse(problem.text, "<problem>")[problem.name]
    return program.specialise(*program.types()[0]).elaborated.term


_SLIDES = "The program is that of the Lift talks; tiles are of {n} x {m} elements of the result, summed {k} at a time."


def pages() -> tuple[Page, ...]:
    """All pages, in the order of the index."""
    found = [
        Page(
            version.name,
            f"Matrix multiplication: {version.name}",
            f"{version.purpose[0].upper()}{version.purpose[1:]}. "
            + _SLIDES.format(n=version.n, m=version.m, k=version.k),
            _product,
            some_cpu,
            version.name,
        )
        for version in matrix_multiplication.VERSIONS
    ]
    found += [
        Page(
            each.name,
            f"Parallel reduction, version {each.name.rpartition('-')[2]}",
            f'What the kernel does: {each.purpose}. (M. Harris, "Optimizing Parallel Reduction in CUDA", 2007.)',
            _sum,
            lambda: GENERIC_GPU,
            each.name,
        )
        for each in reduction.VERSIONS
    ]
    found.append(
        Page(
            "gemm-cpu",
            "Matrix multiplication on a CPU, by default",
            "What `gemm` becomes where nothing was measured: all steps of the default lowering.",
            _gemm,
            some_cpu,
        )
    )
    return tuple(found)


def index() -> str:
    """The page that lists the others."""
    lines = [
        "# Derivations",
        "",
        "How programs become lowered programs, step by step. Made from the code by `lithify report derivations`.",
        "",
        *[f"* [{page.title}]({page.name}.md)" for page in pages()],
    ]
    return "\n".join(lines) + "\n"


def text_of(page: Page) -> str:
    """The page as Markdown."""
    derivation, lowered = _derived(page)
    start = show(derivation.start, _WIDTH)
    parts = [f"# {page.title}", textwrap.fill(page.text, _TEXT_WIDTH), f"{_command(page)}The program:", _block(start)]
    parts += list(_steps(derivation, start))
    if lowered is not derivation:
        rest = lowered.names()[len(derivation.names()) :]
        parts += [
            "## What is left open",
            _prose(f"The default of the device ({page.model()}) answers it by {summary(rest) or 'nothing'}:"),
            _block(show(lowered.term, _WIDTH)),
        ]
    return "\n\n".join(parts) + "\n"


def all_texts() -> dict[str, str]:
    """Every page by its file name."""
    return {"README.md": index(), **{f"{page.name}.md": text_of(page) for page in pages()}}


def _derived(page: Page) -> tuple[Derivation, Derivation]:
    """The derivation that is shown, and the whole one."""
    program, model = page.program(), page.model()
    whole = lower(program, model, strategy=page.strategy).derivation
    if page.strategy is None:
        return whole, whole
    shown = Derivation(name_loops(program))
    named(page.strategy)(shown, model)
    return shown, whole


def _command(page: Page) -> str:
    return "" if page.strategy is None else f"`lithify derive PROGRAM --strategy {page.strategy} --steps` shows it. "


def _steps(derivation: Derivation, before: str) -> Iterator[str]:
    for number, same, term in derivation.shown_terms():
        rule, where = same[0].rule.rule, f", {places(same)}" if len(same) > 1 else ""
        conditions = "".join(f"\n    when {each}" for each in rule.conditions)
        after = show(term, _WIDTH)
        yield f"## {number}. {same[0].rule.name}{where}"
        yield _block(_wrapped(rule.text) + conditions)
        yield _prose(rule.law)
        yield _block(_changed(before, after), "diff")
        before = after


def _wrapped(text: str) -> str:
    """A rule on two lines where it is long."""
    return text if len(text) <= _WIDTH else text.replace(" -> ", "\n  -> ", 1)


def _changed(before: str, after: str) -> str:
    """The program after a step; lines that it did not have before are marked.

    Of a long program, those and the lines around them alone. (A line that only moved to the right is an old one.)
    """
    old, new = [line.strip() for line in before.splitlines()], after.splitlines()
    marks = [" "] * len(new)
    matcher = difflib.SequenceMatcher(None, old, [line.strip() for line in new], autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            marks[start:end] = "+" * (end - start)
    shown = set(range(len(new)))
    if len(new) > _LONG:
        near = [range(k - _AROUND, k + _AROUND + 1) for k, mark in enumerate(marks) if mark == "+"]
        shown &= {k for each in near for k in each}
    lines = []
    for k, line in enumerate(new):
        if k in shown:
            lines.append(f"{marks[k]} {line}".rstrip())
        elif not lines or lines[-1] != _LEFT_OUT:
            lines.append(_LEFT_OUT)
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Text for a page: lines of readable length, no accidental emphasis."""
    return textwrap.fill(text.replace("*", r"\*").replace("_", r"\_"), _TEXT_WIDTH, break_long_words=False)


def _block(text: str, language: str = "haskell") -> str:
    return f"```{language}\n{text}\n```"
