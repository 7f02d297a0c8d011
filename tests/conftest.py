"""What the whole suite shares: hypothesis profiles, a cache of its own, the OpenCL devices and checker of this machine.

A test that needs OpenCL takes the fixture `opencl_device` (PoCL where it is installed) or `opencl_devices`
(all of them); one that needs the checker takes `oclgrind`. Where they are missing the test is skipped, the
reason says how to get them, and the summary of the run counts what was left out.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lithify.targets.c.compiler import CompileError, find_compiler

# What was tuned on the machine that runs the suite is no part of what is tested.
os.environ["LITHIFY_RECORDS"] = ""
# What is generated compiles without a warning.
os.environ["CFLAGS"] = "-Werror"

_HOW_TO_INSTALL = "run `make opencl`, or on Debian and Ubuntu: apt-get install pocl-opencl-icd oclgrind"

# `ci` is the default: new examples at every run, each failure printed so that it can be replayed.
# `thorough` is for a long look at one file: HYPOTHESIS_PROFILE=thorough pytest tests/arith
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "derandomize": False,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("ci", max_examples=100, **_COMMON)
settings.register_profile("thorough", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """What needs a C compiler is left out where there is none."""
    try:
        return (yield)
    except CompileError:
        if find_compiler() is None:
            pytest.skip("there is no C compiler on this machine: install gcc or clang")
        raise


@pytest.fixture(autouse=True)
def _nothing_ships(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that ship with the package are found where they are what is tested (`test_shipped`), and nowhere else."""
    if not request.node.path.stem.endswith("shipped"):
        monkeypatch.setattr("lithify.explore.records.shipped", lambda: ())
        monkeypatch.setattr("lithify.explore.place._shipped_mark", lambda device: "")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is compiled goes to a cache of the session's own: the user's stays as it is, and hides nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITHIFY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@functools.cache
def _find_opencl() -> tuple[tuple[Any, ...], str]:
    """The OpenCL devices of this machine, PoCL's first, and why there are none (or "")."""
    try:
        import pyopencl
    except ImportError:
        return (), "pyopencl is not installed (pip install 'lithify[opencl]')"
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error:
        return (), f"no OpenCL platform on this machine ({_HOW_TO_INSTALL})"
    devices = []
    for platform in sorted(platforms, key=lambda p: "Portable Computing Language" not in p.name):
        try:
            devices += platform.get_devices()
        except pyopencl.Error:  # a platform may be installed without a device behind it
            continue
    return tuple(devices), "" if devices else f"no OpenCL device on this machine ({_HOW_TO_INSTALL})"


@pytest.fixture(scope="session")
def opencl_devices() -> tuple[Any, ...]:
    """All OpenCL devices (`pyopencl.Device`), PoCL's first."""
    devices, reason = _find_opencl()
    if not devices:
        pytest.skip(reason)
    return devices


@pytest.fixture(scope="session")
def opencl_device(opencl_devices: tuple[Any, ...]) -> Any:
    """One OpenCL device: PoCL's where it is installed."""
    return opencl_devices[0]


@pytest.fixture(scope="session")
def pocl_device(opencl_devices: tuple[Any, ...]) -> Any:
    """PoCL's CPU device, for what is known of PoCL alone."""
    device = opencl_devices[0]
    if "Portable Computing Language" not in device.platform.name:
        pytest.skip(f"PoCL is not installed ({_HOW_TO_INSTALL})")
    return device


@pytest.fixture(scope="session")
def oclgrind() -> str:
    """The path of the checker oclgrind."""
    path = shutil.which("oclgrind")
    if path is None:
        pytest.skip(f"oclgrind is not installed ({_HOW_TO_INSTALL})")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by fixture, so that `-m opencl` finds what needs OpenCL without a mark at each test."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & {"opencl_devices", "opencl_device", "pocl_device"}:
            item.add_marker(pytest.mark.opencl)
        if "oclgrind" in fixtures:
            item.add_marker(pytest.mark.oclgrind)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say with which OpenCL devices the suite ran, or that and why it ran without."""
    devices, reason = _find_opencl()
    names = ", ".join(f"{device.platform.name.strip()}: {device.name.strip()}" for device in devices)
    terminalreporter.write_line(f"OpenCL devices: {names or 'none, OpenCL tests were skipped: ' + reason}")
    if shutil.which("oclgrind") is None:
        terminalreporter.write_line(f"oclgrind: none, its tests were skipped ({_HOW_TO_INSTALL})")
