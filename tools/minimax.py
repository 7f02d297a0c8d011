"""Computes the polynomial coefficients in `lithify/targets/cpu/coefficients.py`. Needs mpmath; prints the module.

Each polynomial is the best approximation in the weighted maximum norm on its interval, found by Remez exchange in 60
digits and printed as the nearest f32 or f64 numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 60

Function = Callable[[mp.mpf], mp.mpf]


def remez(f: Function, weight: Function, low: mp.mpf, high: mp.mpf, degree: int) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients, lowest first, of the polynomial that minimises max |weight (f - p)|, and that maximum."""
    count = degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    coefficients: list[mp.mpf] = []
    error = mp.mpf(0)
    for _ in range(12):
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, x in enumerate(points):
            for column in range(degree + 1):
                matrix[row, column] = (x - middle) ** column
            matrix[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = f(x)
        solution = mp.lu_solve(matrix, right)
        local = [solution[k] for k in range(degree + 1)]
        coefficients = _about_zero(local, middle)

        def residual(x: mp.mpf, local: list[mp.mpf] = local) -> mp.mpf:
            return weight(x) * (f(x) - mp.polyval(local[::-1], x - middle))

        points, error, least = _extrema(residual, low, high, points)
        if error - least < error * mp.mpf(10) ** -4:
            break
    return coefficients, error


def _about_zero(local: list[mp.mpf], middle: mp.mpf) -> list[mp.mpf]:
    result = [mp.mpf(0)]
    for c in reversed(local):  # Horner's scheme on polynomials: result (x - middle) + c
        shifted = [mp.mpf(0), *result]
        result = [s - middle * r for s, r in zip(shifted, [*result, mp.mpf(0)], strict=True)]
        result[0] += c
    return result[: len(local)]


def _extrema(
    residual: Function, low: mp.mpf, high: mp.mpf, points: list[mp.mpf]
) -> tuple[list[mp.mpf], mp.mpf, mp.mpf]:
    """The alternating extrema of the residual, one between neighbouring sign changes."""
    grid = 12 * len(points)
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / grid) for k in range(grid + 1)]
    values = [residual(x) for x in xs]
    runs: list[list[int]] = []
    for k, value in enumerate(values):
        if runs and (value > 0) == (values[runs[-1][0]] > 0):
            runs[-1].append(k)
        else:
            runs.append([k])
    best = [max(run, key=lambda k: abs(values[k])) for run in runs]
    while len(best) > len(points):
        best.pop(0 if abs(values[best[0]]) < abs(values[best[-1]]) else -1)
    if len(best) < len(points):
        raise ArithmeticError("the residual does not alternate often enough")
    refined = [_refine(residual, xs, k) for k in best]
    sizes = [abs(residual(x)) for x in refined]
    return refined, max(sizes), min(sizes)


def _refine(residual: Function, xs: list[mp.mpf], k: int) -> mp.mpf:
    if k in (0, len(xs) - 1):
        return xs[k]
    a, b, c = xs[k - 1 : k + 2]
    for _ in range(3):  # vertex of the parabola through three points
        fa, fb, fc = residual(a), residual(b), residual(c)
        low = (b - a) * (fb - fc) - (b - c) * (fb - fa)
        if low == 0:
            break
        vertex = b - ((b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa)) / (2 * low)
        if not a < vertex < c:
            break
        step = abs(vertex - b) / 4 + (c - a) / 100
        a, b, c = vertex - step, vertex, vertex + step
    return min(max(b, xs[0]), xs[-1])


def _tail(series: Callable[[int], mp.mpf], x: mp.mpf) -> mp.mpf:
    """sum series(k) x^k: functions whose closed form cancels near 0."""
    return mp.fsum(series(k) * x**k for k in range(60))


def _one(x: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


def _tanh_rest(z: mp.mpf) -> mp.mpf:
    if z < mp.mpf("1e-12"):
        return mp.mpf(-1) / 3 + 2 * z / 15
    return (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


_half_ln2 = mp.log(2) / 2
_quarter = (mp.pi / 4) ** 2

# name: (function, weight, low, high, degree for f32, degree for f64)
POLYNOMIALS: dict[str, tuple[Function, Function, mp.mpf, mp.mpf, int, int]] = {
    # e^r = 1 + r + r^2 EXP(r)
    "EXP": (lambda r: _tail(lambda k: 1 / mp.factorial(k + 2), r), lambda r: r**2 * mp.exp(-r) + mp.mpf("1e-9"),
            -_half_ln2 * mp.mpf("1.0001"), _half_ln2 * mp.mpf("1.0001"), 4, 9),
    # log((1 + s) / (1 - s)) = 2 s + s z LOG(z), z = s^2
    "LOG": (lambda z: _tail(lambda k: mp.mpf(2) / (2 * k + 3), z), lambda z: z + mp.mpf("1e-9"),
            mp.mpf(0), mp.mpf("0.02944"), 3, 6),
    # sin r = r + r z SIN(z), z = r^2
    "SIN": (lambda z: _tail(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3), z), lambda z: z + mp.mpf("1e-9"),
            mp.mpf(0), _quarter * mp.mpf("1.0001"), 2, 5),
    # cos r = 1 - z / 2 + z^2 COS(z), z = r^2
    "COS": (lambda z: _tail(lambda k: (-1) ** k / mp.factorial(2 * k + 4), z), lambda z: z**2 + mp.mpf("1e-9"),
            mp.mpf(0), _quarter * mp.mpf("1.0001"), 2, 5),
    # tanh x = x + x z TANH(z), z = x^2, |x| < 0.55
    "TANH": (_tanh_rest,
             lambda z: z + mp.mpf("1e-9"), mp.mpf(0), mp.mpf("0.3025"), 4, 10),
    # erf x = x + x ERF(z), z = x^2, |x| < 1
    "ERF": (lambda z: _tail(lambda k: 2 / mp.sqrt(mp.pi) * (-1) ** k / (mp.factorial(k) * (2 * k + 1)), z) - 1, _one,
            mp.mpf(0), mp.mpf(1), 7, 13),
    # erf x = 1 - e^-ERFC(x - 2.5) for x >= 1, up to 4 in f32 and 6 in f64
    "ERFC": (lambda u: -mp.log(mp.erfc(u + mp.mpf("2.5"))), lambda u: mp.erfc(u + mp.mpf("2.5")),
             mp.mpf("-1.5"), mp.mpf("1.5"), 9, 21),
}  # fmt: skip


def main() -> None:
    print('"""Coefficients of best polynomials, lowest power first; computed by `tools/minimax.py`."""\n')
    print("from __future__ import annotations\n")
    for name, (f, weight, low, high, short, long) in POLYNOMIALS.items():
        for kind, degree in (("float", short), ("double", long)):
            end = mp.mpf("3.5") if (name, kind) == ("ERFC", "double") else high
            coefficients, error = remez(f, weight, low, end, degree)
            print(f"# weighted error {mp.nstr(error, 2)}")
            numbers = ", ".join(repr(float(c)) for c in coefficients)
            print(f"{name}_{kind.upper()} = ({numbers})\n")


if __name__ == "__main__":
    main()
