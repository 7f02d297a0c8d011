"""The programs that are measured on the CPU: arguments, what they move at least, and what others offer for the same.

Sizes are those of the published evaluations, whose arrays a large cache holds; what only reads and writes memory is
measured a second time, with arrays that no cache holds. Every case is a line of data: what is measured, and against
what, is all here. Results go into arrays that exist already, ours and, where they can, the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg.blas as blas
import scipy.ndimage as nd
import scipy.special

from benchmarks.stream import aligned, beyond_caches
from lithify.machine import host

torch: Any
try:
    import torch
except ImportError:  # compared with where it is installed
    torch = None

Array = Any  # float32, of NumPy
Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A program of `text` with its arguments, the others that compute the same, and what it cannot do without.

    `reads` and `writes` are in elements of 4 bytes; `operations` is set where arithmetic is the bound, not memory.
    """

    text: str
    program: str
    arguments: tuple[Any, ...]
    others: dict[str, Run]
    reads: int
    writes: int = 1
    size: str = ""
    operations: int = 0
    result: tuple[int, ...] | None = field(default=None)


@dataclass(frozen=True)
class Group:
    """Cases that share arrays, which are made with the first of them.

    `elements`: of each array of the streams that are measured beside them; `rounds`: how often each is measured.
    """

    cases: Callable[[], Iterator[Case]]
    elements: int
    rounds: int


def array(*shape: int, seed: int = 1) -> Array:
    """Random numbers in [-1, 1) that begin at a multiple of 64 bytes."""
    found = aligned(int(np.prod(shape)))
    np.random.default_rng(seed).random(out=found, dtype=np.float32)
    found *= 2
    found -= 1
    return found.reshape(shape)


def with_torch(runs: dict[str, Run], **more: Callable[[Any], Run]) -> dict[str, Run]:
    """The runs, and those of torch where it is installed; each of them is made from the module."""
    return runs | ({name: make(torch) for name, make in more.items()} if torch is not None else {})


def tensor(x: Array) -> Any:
    return torch.from_numpy(x) if torch is not None else None


# ---- BLAS ------------------------------------------------------------------------------------------------------------


def vectors(n: int) -> Iterator[Case]:
    x, y, out = array(n), array(n, seed=2), array(n)
    tx, ty, tout = tensor(x), tensor(y), tensor(out)
    a = np.float32(3)
    size = f"{n}"

    def case(name: str, arguments: tuple[Any, ...], others: dict[str, Run], reads: int, writes: int = 0) -> Case:
        return Case("blas", name, arguments, others, reads, max(1, writes), size, 0, (n,) if writes else ())

    yield case(
        "scal",
        (3.0, x),
        with_torch({"NumPy": lambda: np.multiply(x, a, out=out)}, torch=lambda t: lambda: t.mul(tx, 3.0, out=tout)),
        n,
        n,
    )
    yield case(
        "axpy",
        (3.0, x, y),
        with_torch(
            {"NumPy": lambda: np.add(np.multiply(x, a, out=out), y, out=out)},
            torch=lambda t: lambda: t.add(ty, tx, alpha=3.0, out=tout),
        ),
        2 * n,
        n,
    )
    yield case(
        "sum", (x,), with_torch({"NumPy": lambda: x.sum(), **halide_sum(x)}, torch=lambda t: lambda: t.sum(tx)), n
    )
    yield case(
        "asum",
        (x,),
        with_torch({"OpenBLAS": lambda: blas.sasum(x)}, torch=lambda t: lambda: t.linalg.vector_norm(tx, 1)),
        n,
    )
    yield case(
        "dot", (x, y), with_torch({"OpenBLAS": lambda: np.dot(x, y)}, torch=lambda t: lambda: t.dot(tx, ty)), 2 * n
    )
    yield case(
        "nrm2",
        (x,),
        with_torch({"OpenBLAS": lambda: blas.snrm2(x)}, torch=lambda t: lambda: t.linalg.vector_norm(tx)),
        n,
    )
    yield case(
        "amax",
        (x,),
        with_torch(
            {"OpenBLAS": lambda: blas.isamax(x), "NumPy": lambda: np.abs(x).argmax()},
            torch=lambda t: lambda: t.argmax(t.abs(tx)),
        ),
        n,
    )


def halide_sum(x: Array) -> dict[str, Run]:
    """Halide's sum with a schedule by hand: a partial sum a task, in vectors."""
    try:
        import halide as hl  # type: ignore[import-untyped]
    except ImportError:
        return {}
    tasks, lanes = 16, 64
    source = hl.Buffer(x)
    piece = len(x) // tasks
    task, lane = hl.Var("task"), hl.Var("lane")
    step = hl.RDom([(0, piece // lanes)])
    partial = hl.Func("partial")
    partial[lane, task] = hl.f32(0)
    partial[lane, task] += source[task * piece + step.x * lanes + lane]
    across = hl.RDom([(0, lanes)])
    total = hl.Func("total")
    total[task] = hl.f32(0)
    total[task] += partial[across.x, task]
    partial.compute_at(total, task).bound_extent(lane, lanes).vectorize(lane, 16).unroll(lane)
    partial.update(0).reorder(lane, step.x, task).vectorize(lane, 16).unroll(lane)
    total.compute_root().parallel(task)
    total.update(0).parallel(task)
    sums = hl.RDom([(0, tasks)])
    result = hl.Func("result")
    result[()] = hl.f32(0)
    result[()] += total[sums.x]
    result.compile_jit()
    out = hl.Buffer(hl.Float(32), [])
    return {"Halide": lambda: result.realize(out)}


def matrices(m: int, n: int) -> Iterator[Case]:
    a, b, x, y, xt, yt, out = array(m, n), array(m, n, seed=2), array(n), array(m), array(m), array(n), array(m, n)
    ta, tb, tx, ty, txt, tyt, tout = map(tensor, (a, b, x, y, xt, yt, out))
    ym, yn = array(m), array(n)
    tym, tyn = tensor(ym), tensor(yn)
    size = f"{m} x {n}"
    yield Case(
        "blas",
        "gemv",
        (a, x, y, 1.5, 0.5),
        with_torch(
            {"OpenBLAS": lambda: blas.sgemv(1.5, a.T, x, 0.5, y, trans=1)},
            torch=lambda t: lambda: t.addmv(ty, ta, tx, alpha=1.5, beta=0.5, out=tym),
        ),
        m * n,
        m,
        size,
        0,
        (m,),
    )
    yield Case(
        "blas",
        "gemvT",
        (a, xt, yt, 1.5, 0.5),
        with_torch(
            {"OpenBLAS": lambda: blas.sgemv(1.5, a.T, xt, 0.5, yt)},
            torch=lambda t: lambda: t.addmv(tyt, ta.t(), txt, alpha=1.5, beta=0.5, out=tyn),
        ),
        m * n,
        n,
        size,
        0,
        (n,),
    )
    yield Case(
        "blas",
        "ger",
        (a, xt, x, 1.5),
        with_torch(
            {"NumPy": lambda: np.add(a, np.multiply.outer(xt, x, out=out), out=out)},
            torch=lambda t: lambda: t.addr(ta, txt, tx, alpha=1.5, out=tout),
        ),
        m * n,
        m * n,
        size,
        0,
        (m, n),
    )
    yield Case(
        "blas",
        "gesummv",
        (a, b, x, 1.5, 0.5),
        with_torch(
            {
                "OpenBLAS": lambda: blas.sgemv(
                    0.5, b.T, x, 1.0, blas.sgemv(1.5, a.T, x, trans=1), trans=1, overwrite_y=1
                )
            },
            torch=lambda t: lambda: t.addmv(t.mv(ta, tx).mul_(1.5), tb, tx, beta=1, alpha=0.5),
        ),
        2 * m * n,
        m,
        size,
        0,
        (m,),
    )


def products(n: int) -> Iterator[Case]:
    a, b, c, out = array(n, n), array(n, n), array(n, n), array(n, n)
    others: dict[str, Run] = {"OpenBLAS": lambda: np.matmul(a, b, out=out)}
    yield Case("blas", "gemm", (a, b, c, 1.0, 0.0), others, 3 * n * n, n * n, f"{n}", 2 * n**3, (n, n))
    yield Case("blas", "gemmNT", (a, b, c, 1.0, 0.0), {"OpenBLAS": lambda: np.matmul(a, b.T, out=out)},
               3 * n * n, n * n, f"{n}", 2 * n**3, (n, n))  # fmt: skip


# ---- layout and rows -------------------------------------------------------------------------------------------------


def layouts(n: int) -> Iterator[Case]:
    x, out = array(n, n), array(n, n)
    tx, tout = tensor(x), tensor(out)
    yield Case("layout", "transpose2D", (x,), with_torch({"NumPy": lambda: np.copyto(out, x.T)},
               torch=lambda t: lambda: tout.copy_(tx.t())), n * n, n * n, f"{n} x {n}", 0, (n, n))  # fmt: skip
    p, q, r, s = 16, n // 16, n // 32, 32
    for name, order in (("swapMiddle", (0, 2, 1, 3)), ("channelsLast", (0, 2, 3, 1)), ("reverseDims", (3, 2, 1, 0))):
        x4 = x.reshape(p, q, r, s)
        result = tuple(x4.shape[k] for k in order)
        o4 = out.reshape(result)
        t4, tout4 = tensor(x4), tensor(o4)
        yield Case(
            "layout",
            name,
            (x4,),
            with_torch(
                {"NumPy": partial(np.copyto, o4, x4.transpose(order))},
                torch=partial(_permuted, t4, tout4, order),
            ),
            n * n,
            n * n,
            f"{p} x {q} x {r} x {s}",
            0,
            result,
        )
    v, vout = x.reshape(-1), out.reshape(-1)
    tv, tvout = tensor(v), tensor(vout)
    for name in ("inclusiveScan", "exclusiveScan"):
        yield Case("layout", name, (v,), with_torch({"NumPy": lambda: np.cumsum(v, out=vout)},
                   torch=lambda t: lambda: t.cumsum(tv, 0, out=tvout)),
                   n * n, n * n, f"{n * n}", 0, (n * n,))  # fmt: skip


def _permuted(x: Any, out: Any, order: tuple[int, ...], torch: Any) -> Run:
    del torch
    return partial(out.copy_, x.permute(order))


def rows(m: int, n: int) -> Iterator[Case]:
    x, g, b, out = array(m, n), array(n), array(n, seed=2), array(m, n)
    tx, tg, tb = tensor(x), tensor(g), tensor(b)
    size = f"{m} x {n}"
    yield Case("rows", "softmax", (x,), with_torch({"SciPy": lambda: scipy.special.softmax(x, axis=1)},
               torch=lambda t: lambda: t.softmax(tx, 1, out=tensor(out))), m * n, m * n, size, 0, (m, n))  # fmt: skip
    yield Case(
        "rows",
        "layernorm",
        (x, g, b, 1e-5),
        with_torch({}, torch=lambda t: lambda: t.nn.functional.layer_norm(tx, (n,), tg, tb, 1e-5)),
        m * n,
        m * n,
        size,
        0,
        (m, n),
    )
    yield Case(
        "rows",
        "rmsnorm",
        (x, g, 1e-5),
        with_torch({}, torch=lambda t: lambda: t.nn.functional.rms_norm(tx, (n,), tg, 1e-5)),
        m * n,
        m * n,
        size,
        0,
        (m, n),
    )
    yield Case("rows", "variance", (x,), with_torch({"NumPy": lambda: x.var(axis=1)},
               torch=lambda t: lambda: t.var(tx, 1, correction=0)), m * n, m, size, 0, (m,))  # fmt: skip


# ---- science ---------------------------------------------------------------------------------------------------------


def places(n: int) -> Iterator[Case]:
    x, y, out, other = array(n), array(n, seed=2), array(n), array(n)
    tx, ty, tout, tother = map(tensor, (x, y, out, other))
    lat, lng = np.float32(0.3), np.float32(-0.2)

    def distance() -> Any:
        np.square(np.subtract(lat, x, out=out), out=out)
        np.square(np.subtract(lng, y, out=other), out=other)
        return np.sqrt(np.add(out, other, out=out), out=out)

    def torch_distance(t: Any) -> Run:
        return lambda: t.sub(tx, 0.3, out=tout).square_().add_(t.sub(ty, -0.2, out=tother).square_()).sqrt_()

    yield Case("science", "nn", (x, y, 0.3, -0.2), with_torch({"NumPy": distance}, torch=torch_distance),
               2 * n, n, f"{n}", 0, (n,))  # fmt: skip
    yield Case(
        "science",
        "phiMag",
        (x, y),
        with_torch(
            {"NumPy": lambda: np.add(np.square(x, out=out), np.square(y, out=other), out=out)},
            torch=lambda t: lambda: t.square(tx, out=tout).addcmul_(ty, ty),
        ),
        2 * n,
        n,
        f"{n}",
        0,
        (n,),
    )


def resonance(samples: int, voxels: int) -> Iterator[Case]:
    k, v = array(4, samples), array(3, voxels)

    def q() -> Any:
        angles = np.float32(2 * np.pi) * (v.T @ k[:3])
        return np.cos(angles) @ k[3], np.sin(angles) @ k[3]

    yield Case("science", "mriQ", (*v, *k), {"NumPy": q}, 3 * voxels, 2 * voxels, f"K {samples}, X {voxels}",
               samples * voxels * 2 * 16, None)  # fmt: skip


# ---- images and grids ------------------------------------------------------------------------------------------------

GAUSSIAN = np.outer([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]).astype(np.float32)
GAUSSIAN[:] = [[2, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]
GAUSSIAN /= 159


def images(m: int, n: int) -> Iterator[Case]:
    x, out = array(m, n), array(m, n)
    x += 1
    size = f"{m} x {n}"
    work = [array(m, n) for _ in range(5)]

    def blur(into: Array = out) -> Array:
        nd.correlate(x, GAUSSIAN, into, mode="nearest")
        return into

    def binomial() -> Array:
        row = [0.25, 0.5, 0.25]
        return nd.correlate1d(nd.correlate1d(x, row, 0, work[0], "nearest"), row, 1, out, "nearest")

    def unsharp() -> Array:
        return np.add(x, np.multiply(np.subtract(x, blur(), out=out), np.float32(0.8), out=out), out=out)

    def harris() -> Array:
        ix, iy, xx, xy, yy = work
        nd.sobel(x, 1, ix, "nearest")
        nd.sobel(x, 0, iy, "nearest")
        ix /= 12
        iy /= 12
        for product, (p, q) in ((xx, (ix, ix)), (xy, (ix, iy)), (yy, (iy, iy))):
            nd.uniform_filter(p * q, 3, product, "nearest")
            product *= 9
        return np.subtract(xx * yy - xy * xy, np.float32(0.04) * np.square(xx + yy), out=out)

    weights = np.hanning(19)[1:-1].astype(np.float32)
    weights /= weights.sum()

    def separable() -> Array:
        return nd.correlate1d(nd.correlate1d(x, weights, 1, work[0], "nearest"), weights, 0, out, "nearest")

    def torch_filter(kernel: Array) -> Callable[[Any], Run]:
        def make(t: Any) -> Run:
            pad = kernel.shape[0] // 2
            image, k = tensor(x)[None, None], tensor(kernel)[None, None]
            return lambda: t.conv2d(t.nn.functional.pad(image, (pad,) * 4, mode="replicate"), k)

        return make

    small = (np.outer([1, 2, 1], [1, 2, 1]) / 16).astype(np.float32)
    yield Case("image", "binomial", (x,), with_torch({"SciPy": binomial}, torch=torch_filter(small)),
               m * n, m * n, size, 0, (m, n))  # fmt: skip
    yield Case("image", "gaussian", (x,), with_torch({"SciPy": blur}, torch=torch_filter(GAUSSIAN)),
               m * n, m * n, size, 0, (m, n))  # fmt: skip
    yield Case("image", "unsharp", (x, 0.8), {"SciPy": unsharp}, m * n, m * n, size, 0, (m, n))
    yield Case("image", "harris", (x, 0.04), {"SciPy": harris}, m * n, m * n, size, 0, (m, n))
    yield Case("image", "separable", (weights, x), {"SciPy": separable}, m * n, m * n, size, 0, (m, n))


def neighbours(x: Array, *offset: int) -> Array:
    """The inner part of a padded array, shifted."""
    return x[tuple(slice(1 + o, s - 1 + o) for o, s in zip(offset, x.shape, strict=True))]


def grids2(m: int, n: int) -> Iterator[Case]:
    x, out, other = array(m, n), array(m, n), array(m, n)
    x += 2
    size = f"{m} x {n}"
    f = np.float32
    five = np.array([[0, 5, 0], [12, 15, 12], [0, 5, 0]], f) / 118
    nine = np.array([[7, 5, 9], [12, 15, 12], [9, 5, 7]], f) / 118

    def weighted(kernel: Array) -> Run:
        def run() -> Array:
            p = np.pad(x, 1, mode="edge")
            out[:] = 0
            for (i, j), w in np.ndenumerate(kernel):
                if w:
                    np.add(out, np.multiply(neighbours(p, i - 1, j - 1), w, out=other), out=out)
            return out

        return run

    def gradient() -> Array:
        p = np.pad(x, 1, mode="edge")
        out[:] = 1e-4
        for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            np.add(out, np.square(np.subtract(x, neighbours(p, i, j), out=other), out=other), out=out)
        return np.add(x, np.divide(f(1), np.sqrt(out, out=out), out=out), out=out)

    def scipy(kernel: Array) -> Run:
        return lambda: nd.correlate(x, kernel, out, mode="nearest")

    yield Case("stencil", "jacobi2D5", (x,), {"NumPy": weighted(five), "SciPy": scipy(five)},
               m * n, m * n, size, 0, (m, n))  # fmt: skip
    yield Case("stencil", "jacobi2D9", (x,), {"NumPy": weighted(nine), "SciPy": scipy(nine)},
               m * n, m * n, size, 0, (m, n))  # fmt: skip
    yield Case("stencil", "gradient2D", (x,), {"NumPy": gradient}, m * n, m * n, size, 0, (m, n))


def grids3(n: int) -> Iterator[Case]:
    x, out, other = array(n, n, n), array(n, n, n), array(n, n, n)
    f = np.float32
    seven = np.zeros((3, 3, 3), f)
    for at, w in {(1, 1, 2): 0.161, (1, 1, 0): 0.162, (1, 2, 1): 0.163, (1, 0, 1): 0.164, (2, 1, 1): 0.165,
                  (0, 1, 1): 0.166, (1, 1, 1): -1.67}.items():  # fmt: skip
        seven[at] = w
    distance = np.abs(np.indices((3, 3, 3)) - 1).sum(0)
    nineteen = np.choose(distance, np.array([2.666, -0.166, -0.0833, 0], f))

    def weighted(kernel: Array) -> Run:
        def run() -> Array:
            p = np.pad(x, 1, mode="edge")
            out[:] = 0
            for (i, j, k), w in np.ndenumerate(kernel):
                if w:
                    np.add(out, np.multiply(neighbours(p, i - 1, j - 1, k - 1), w, out=other), out=out)
            return out

        return run

    for name, kernel in (("jacobi3D7", seven), ("poisson3D19", nineteen)):
        yield Case("stencil", name, (x,), {"NumPy": weighted(kernel)}, n**3, n**3, f"{n}^3", 0, (n, n, n))


def srad(m: int, n: int) -> Iterator[Case]:
    x, c = array(m, n), array(m, n)
    x += 2
    f = np.float32

    def first() -> Array:
        p = np.pad(x, 1, mode="edge")
        north, south, west, east = (neighbours(p, i, j) - x for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)))
        g2 = (north**2 + south**2 + west**2 + east**2) / x**2
        laplace = (north + south + west + east) / x
        q = (f(0.5) * g2 - f(0.0625) * laplace**2) / (1 + f(0.25) * laplace) ** 2
        return np.clip(1 / (1 + (q - f(0.05)) / f(0.05 * 1.05)), 0, 1)

    def second() -> Array:
        p, d = np.pad(x, 1, mode="edge"), np.pad(c, 1, mode="edge")
        total = c * (neighbours(p, -1, 0) - x) + neighbours(d, 1, 0) * (neighbours(p, 1, 0) - x)
        total += c * (neighbours(p, 0, -1) - x) + neighbours(d, 0, 1) * (neighbours(p, 0, 1) - x)
        return x + f(0.25 * 0.5) * total

    size = f"{m} x {n}"
    yield Case("stencil", "srad1", (x, 0.05), {"NumPy": first}, m * n, m * n, size, 0, (m, n))
    yield Case("stencil", "srad2", (x, c, 0.5), {"NumPy": second}, 2 * m * n, m * n, size, 0, (m, n))


def cases(quick: bool) -> Iterator[Group]:
    """All of them; `quick` divides the sizes, and has none that no cache holds."""
    s = 8 if quick else 1
    elements = (1 << 24) // s**2
    groups: tuple[Callable[[], Iterator[Case]], ...] = (
        lambda: vectors(elements),
        lambda: matrices(4096 // s, 4096 // s),
        lambda: products(512 // s),
        lambda: layouts(4096 // s),
        lambda: rows(4096 // s, 4096 // s),
        lambda: rows(32768 // s, 1024 // s),
        lambda: rows(1024 // s, 65536 // s),
        lambda: places(8_388_608 // s**2),
        lambda: resonance(2048 // s, 32_768 // s),
        lambda: images(1536 // s, 2560 // s),
        lambda: images(4256 // s, 2832 // s),
        lambda: grids2(4096 // s, 4096 // s),
        lambda: grids3(256 // s),
        lambda: srad(504, 458),
    )
    for group in groups:
        yield Group(group, elements, 3 if quick else 9)
    large = beyond_caches(host())
    if not quick and large > elements:
        m = 1 << (large.bit_length() // 2)
        for group in (lambda: vectors(large), lambda: matrices(m, large // m), lambda: places(large)):
            yield Group(group, large, 5)
