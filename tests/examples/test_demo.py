"""The demonstration: its comparisons are the same mathematics, and it runs from beginning to end."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lithify as lf

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> Any:
    for package in ("PIL", "scipy", "skimage"):
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["demo"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "parameter"), [("unsharp", "AMOUNT"), ("harris", "KAPPA")])
@pytest.mark.parametrize("shape", [(31, 45), (8, 64), (1, 1), (5, 1)])
def test_all_three_do_the_same(demo: Any, name: str, parameter: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(1).random(shape)
    by_scipy, by_numpy = getattr(demo, f"{name}_scipy")(image), getattr(demo, f"{name}_numpy")(image)
    np.testing.assert_allclose(by_numpy, by_scipy, atol=1e-12)
    by_lithify = lf.library("image")[name](image, getattr(demo, parameter))
    np.testing.assert_allclose(by_lithify, by_scipy, atol=1e-12)


def test_corners_of_a_square(demo: Any) -> None:
    image = np.zeros((40, 40), np.float32)
    image[10:30, 12:28] = 1
    found = {tuple(place) for place in demo.corners_of(lf.library("image")["harris"](image, 0.05)).tolist()}
    expected = {(r, c) for r in (10, 29) for c in (12, 27)}
    assert all(any(abs(r - x) <= 1 and abs(c - y) <= 1 for x, y in found) for r, c in expected)


def test_the_demonstration(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.setattr(demo, "OUTPUT", tmp_path / "pictures")
    monkeypatch.setattr(demo, "TILES", (1, 1))
    monkeypatch.setattr(demo, "ROUNDS", 1)
    assert demo.main() == 0
    printed = capsys.readouterr().out
    for word in ("unsharp mask", "Harris corners", "faster", "how harris was derived", "corners"):
        assert word in printed
    assert Image.open(tmp_path / "pictures" / "corners.png").size == (1024, 1024)
    assert len(list((tmp_path / "pictures").iterdir())) == 5
