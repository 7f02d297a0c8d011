"""The printed reductions: their text, and their sums where they have no excuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.baseline.reduction_printed import (
    VERSIONS,
    groups_needed,
    measure,
    prepare,
    small_integers,
    source,
)

BY_NAME = {version.name: version for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_text_has_no_open_parameter(version: Any) -> None:
    text = source(version, group=128)
    assert not [name for name in ("GROUP", "STEP", "LAST") if name in text]
    assert text.count("{") == text.count("}")
    assert ("volatile" in text) == version.lockstep_tail


def test_the_tail_of_the_lockstep_versions_has_no_barrier() -> None:
    tail = source(BY_NAME["6"]).split("if (me < 32)")[1]
    assert "barrier" not in tail
    assert [f"me + {s}]" in tail for s in (32, 16, 8, 4, 2, 1)] == [True] * 6


@pytest.mark.parametrize(("name", "groups"), [("1", 4), ("4", 2), ("7", 3)])
def test_groups_cover_the_elements(name: str, groups: int) -> None:
    assert groups_needed(BY_NAME[name], 1000, group=256, persistent_groups=3) == groups


@pytest.mark.parametrize("n", [1, 255, 256, 257, 5000, 1 << 14])
def test_sums_on_a_device(opencl_device: Any, n: int) -> None:
    data = small_integers(n)
    for launch in prepare(opencl_device, data):
        if not launch.version.known_wrong(opencl_device.platform.name):
            assert launch.total() == float(np.sum(data, dtype=np.float64)), launch.version


def test_version_7_as_printed_adds_elements_more_than_once(opencl_device: Any) -> None:
    rows = {row["name"]: row["sum"] for row in measure(opencl_device, 1 << 14, rounds=1)}
    assert rows["7"] == "wrong, as known"
    assert rows["7 repaired"] == "right"
