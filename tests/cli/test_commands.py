"""What each command does with good input."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from lithify.cli import console
from lithify.version import __version__
from tests.cli.conftest import Command

SOURCE = Path(__file__).resolve().parents[2] / "src"


def test_version_and_help(lithify: Command) -> None:
    assert lithify("--version").out == f"lithify {__version__}\n"
    outcome = lithify("--help")
    assert outcome.code == 0
    for command in ("run", "check", "derive", "source", "rules", "devices", "bench", "doctor", "cache"):
        assert command in outcome.out
    assert lithify("run", "-h").code == 0


# ---- run -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("total.lift", "--arg", "xs.npy"), "15.0"),
        (("total.lift:total", "-a", "xs=xs.npy"), "15.0"),
        (("total.lift", "-a", "swapped.npy"), "15.0"),
        (("total.lift", "-a", "doubles.npy"), "15.0"),
        (("total.lift", "-a", "doubles.npy,f32"), "15.0"),
        (("total.lift", "-a", "ones:7,i32"), "7"),
        (("total.lift", "-a", "ones:0,f32"), "0.0"),
        (("programs.lift:scal", "-a", "2", "-a", "xs.npy"), "[ 0.  2.  4.  6.  8. 10.]"),
        (("programs.lift:scal", "-a", "xs=range:3", "-a", "a=-1.5"), "[-0.  -1.5 -3. ]"),
        (("programs.lift:double", "-a", "range:3,i64"), "[0 2 4]"),
        (("programs.lift:blocks", "-a", "xs.npy", "--size", "blockSize=2"), "[1. 5. 9.]"),
        (("programs.lift:both", "-a", "range:2"), "[1. 2.]\n1.0"),
        (("programs.lift:dot", "-a", "range:3,f64", "-a", "ones:3,f64"), "3.0"),
    ],
)
def test_run(lithify: Command, arguments: tuple[str, ...], expected: str) -> None:
    outcome = lithify("run", *arguments)
    assert outcome.code == 0, outcome.err
    assert outcome.out == expected + "\n"


def test_random_data_depend_on_the_seed_alone(lithify: Command) -> None:
    results = [lithify("run", "total.lift", "-a", "random:100,f32", "--seed", s).out for s in ("1", "1", "2")]
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize(
    ("definition", "arguments", "below"),
    [
        ("f (ids : n.idx[m]) (xs : m.f32) = gather ids xs", ("-a", "random:400", "-a", "range:1000"), 1000),
        ("f (ids : n.idx[m]) (xs : m.f32) = gather ids xs", ("-a", "xs=range:3", "-a", "ids=random:400,i32"), 3),
        ("f (ids : n.idx[50]) = map (λ i . f32 i) ids", ("-a", "random:400"), 50),
        ("f (ids : n.idx[m]) = map (λ i . f32 i) ids", ("-a", "random:400", "-s", "m=70"), 70),
    ],
)
def test_random_indices_are_below_what_their_type_says(
    lithify: Command, folder: Path, definition: str, arguments: tuple[str, ...], below: int
) -> None:
    (folder / "picked.lift").write_text(definition, encoding="utf-8")
    outcome = lithify("run", "picked.lift", *arguments, "-o", "picked.npy")
    assert outcome.code == 0, outcome.err
    picked = np.load(folder / "picked.npy")
    assert picked.shape == (400,)
    assert below * 0.9 - 1 <= picked.max() < below
    assert picked.min() <= below * 0.1


def test_no_index_lies_in_an_empty_array(lithify: Command, folder: Path) -> None:
    (folder / "picked.lift").write_text("f (ids : n.idx[m]) (xs : m.f32) = gather ids xs", encoding="utf-8")
    outcome = lithify("run", "picked.lift", "-a", "random:4", "-a", "random:0")
    assert outcome.code == 2
    assert "no index is in idx[0]" in outcome.err
    assert lithify("run", "picked.lift", "-a", "random:0", "-a", "random:0").out == "[]\n"


def test_results_in_files(lithify: Command, folder: Path) -> None:
    outcome = lithify("run", "programs.lift:double", "-a", "xs.npy", "-o", "twice.npy")
    assert outcome.code == 0
    assert outcome.out == ""
    assert "twice.npy: 6.f32" in outcome.err
    np.testing.assert_array_equal(np.load(folder / "twice.npy"), np.arange(6) * 2)
    lithify("run", "programs.lift:both", "-a", "xs.npy", "-o", "r.npy")
    assert float(np.load(folder / "r_1.npy")) == 15
    lithify("run", "programs.lift:both", "-a", "xs.npy", "-o", "a.npy", "-o", "b.npy")
    assert float(np.load(folder / "b.npy")) == 15


@pytest.mark.parametrize("picture", ["grey.png", "colour.png", "grey.png,f64", "grey.png,grey"])
def test_images(lithify: Command, folder: Path, picture: str) -> None:
    from PIL import Image

    assert lithify("run", "programs.lift:invert", "-a", picture, "-o", "inverted.png").code == 0
    before, after = (np.asarray(Image.open(folder / n)) for n in ("grey.png", "inverted.png"))
    np.testing.assert_array_equal(after, 255 - before)


def test_images_of_other_ranges(lithify: Command, folder: Path) -> None:
    from PIL import Image

    (folder / "more.lift").write_text(
        "scaled = λ img . map (map (λ x . x * 4 - 1)) img\nsame = λ img . map (map (λ p . p)) img\n"
    )
    outcome = lithify("run", "more.lift:scaled", "-a", "grey.png", "-o", "stretched.png")
    assert "stretched to black .. white" in outcome.err
    pixels = np.asarray(Image.open(folder / "stretched.png"))
    assert (pixels.min(), pixels.max()) == (0, 255)
    (folder / "copy.lift").write_text("copy = λ img . map (map (map (λ x . x * 1))) img\n")
    assert lithify("run", "copy.lift", "-a", "colour.png,rgb", "-o", "copy.png").code == 0
    assert np.asarray(Image.open(folder / "copy.png")).shape == (12, 16, 3)
    (folder / "bytes.lift").write_text("f = λ img . map (map (λ x . x + 1)) img\n")
    assert lithify("run", "bytes.lift", "-a", "grey.png,u8", "-o", "bytes.png").code == 0
    np.testing.assert_array_equal(np.asarray(Image.open(folder / "bytes.png")), np.arange(192).reshape(12, 16) + 1)


def test_a_python_module(lithify: Command, folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import lithify as lf\nn = lf.size('n')\n\n\n@lf.program\ndef squares(xs: lf.Array[n, lf.f32]):\n"
        "    return lf.sum(xs >> lf.map(lambda x: x * x))\n"
    )
    assert lithify("run", "mine:squares", "-a", "xs.npy").out == "55.0\n"
    assert lithify("check", "mine:squares").out == "squares : n.f32 -> f32\n"


def test_a_program_that_the_package_ships(lithify: Command) -> None:
    assert lithify("run", "lithify.operators.blas:dot", "-a", "xs.npy", "-a", "xs.npy").out == "55.0\n"


def test_time(lithify: Command) -> None:
    outcome = lithify("run", "total.lift", "-a", "xs.npy", "--time")
    assert outcome.code == 0
    assert "time: " in outcome.err
    assert "median" in outcome.err


@pytest.mark.opencl
def test_run_on_opencl(lithify: Command, opencl_device: object) -> None:
    outcome = lithify("run", "total.lift", "-a", "xs.npy", "-d", "opencl:0")
    assert outcome.out == "15.0\n"
    assert "opencl:0" in outcome.err


# ---- check, derive, source -------------------------------------------------------------------------------------------


def test_check_types(lithify: Command) -> None:
    outcome = lithify("check", "programs.lift")
    assert outcome.code == 0
    assert "scal : f32 -> n.f32 -> n.f32" in outcome.out
    assert "dot : for any types of xs, ys that fit" in outcome.out
    assert "parameters without types are checked for given ones: lithify check programs.lift:NAME" in outcome.err
    given = lithify("check", "programs.lift:dot", "-a", "8.f64", "-a", "8.f64")
    assert given.out == "dot : 8.f64 -> 8.f64 -> f64\n"


def test_check_values(lithify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = lithify("check", "programs.lift:dot", "--values", "-a", "500.f32", "-a", "500.f32")
    assert outcome.code == 0, outcome.out
    assert outcome.out.count("ok") == 4
    assert "dot on 13.f32, 13.f32, in place of 500.f32, 500.f32" in outcome.out
    from lithify.program import check

    monkeypatch.setattr(check, "tolerance_of", lambda _scalar: -1.0)
    outcome = lithify("check", "programs.lift:dot", "--values", "-a", "500.f32", "-a", "500.f32")
    assert outcome.code == 1
    assert "WRONG" in outcome.out


def test_derive(lithify: Command, folder: Path) -> None:
    arguments = ("derive", "programs.lift:double", "-a", "1000.f32")
    short = lithify(*arguments)
    assert short.code == 0
    assert "the program" in short.out
    assert "split-join(16)" in short.out
    steps = lithify(*arguments, "--steps", "--save", "d.json")
    assert "- map@" in steps.out
    assert "+ " in steps.out
    saved = json.loads((folder / "d.json").read_text())
    assert len(saved["steps"]) >= 3
    replayed = lithify(*arguments, "--replay", "d.json")
    assert replayed.out == short.out
    programs = lithify(*arguments, "--programs")
    assert programs.out.count("map[vec]") > steps.out.count("map[vec]")
    verified = lithify("derive", "programs.lift:double", "-a", "40.f32", "--verify")
    assert verified.code == 0
    assert "each evaluates equal to the one before" in verified.err


def test_derive_by_a_strategy(lithify: Command) -> None:
    outcome = lithify("derive", "total.lift", "-a", "100000.f32", "--strategy", "reduction-3", "-d", "cpu")
    assert outcome.code == 2
    assert "is for devices with work-groups" in outcome.err
    listed = lithify("strategies")
    assert listed.code == 0
    assert re.search(r"reduction-3  .*; devices with work-groups", listed.out)
    assert re.search(r"tiled  .*; any device", listed.out)


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("program", "reduce (+) 0"),
        ("lowered", "reduce["),
        ("kernel", "kernel dot"),
        ("cpu", "define"),
        ("asm", "ret"),
        ("opencl", "__kernel void dot"),
        ("c", "dot("),
    ],
)
def test_source(lithify: Command, target: str, word: str) -> None:
    outcome = lithify("source", "programs.lift:dot", "-t", target, "-a", "64.f32", "-a", "64.f32")
    assert outcome.code == 0, outcome.err
    assert word in outcome.out


def test_source_for_any_size_and_in_a_file(lithify: Command, folder: Path) -> None:
    outcome = lithify("source", "programs.lift:scal", "-t", "kernel", "-o", "scal.txt")
    assert outcome.code == 0
    assert "sizes n" in (folder / "scal.txt").read_text()


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_rules(lithify: Command) -> None:
    outcome = lithify("rules")
    assert outcome.code == 0
    assert "split-join(n" in outcome.out
    assert "fusion" in outcome.out
    page = lithify("rules", "split-join")
    for word in ("rule", "when", "law", "n >= 1"):
        assert word in page.out
    assert "map-fusion" not in lithify("rules", "--family", "stencil").out


def test_every_rule_has_a_page(lithify: Command) -> None:
    from lithify.rules import all_rules

    for name in all_rules():
        outcome = lithify("rules", name)
        assert outcome.code == 0, (name, outcome.err)
        assert outcome.out.startswith(name)


def test_devices_and_doctor(lithify: Command) -> None:
    outcome = lithify("devices")
    assert outcome.code == 0
    assert "ready, the default" in outcome.out
    outcome = lithify("doctor")
    assert outcome.code == 0
    assert "cpu" in outcome.out
    assert "a dot product is right" in outcome.out
    assert "FAIL" not in outcome.out


def test_doctor_says_how_to_get_opencl(lithify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from lithify.targets import opencl

    monkeypatch.setattr(opencl, "devices", tuple)
    monkeypatch.setattr(importlib.import_module("lithify.targets.opencl.devices"), "devices", tuple)
    outcome = lithify("doctor")
    assert outcome.code == 0
    assert "pocl-opencl-icd" in outcome.out


def test_bench(lithify: Command) -> None:
    outcome = lithify("bench", "total.lift", "-a", "random:100000,f32")
    assert outcome.code == 0, outcome.err
    for word in ("share", "reference evaluator", "cpu"):
        assert word in outcome.out


def test_cache(lithify: Command) -> None:
    lithify("run", "total.lift", "-a", "xs.npy")
    assert "entries" in lithify("cache", "stats").out
    assert "removed" in lithify("cache", "clear").out
    assert ": 0 entries" in lithify("cache", "stats").out


def test_as_a_module(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "lithify", "run", "total.lift", "--arg", "xs.npy"]
    assert subprocess.run(command, capture_output=True, text=True, env=environment).stdout == "15.0\n"


def test_an_output_that_lacks_letters(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "lithify", "derive", "total.lift", "--arg", "6.f32"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert r"\u03bb(xs : 6.f32)" in done.stdout


def test_as_a_process(folder: Path) -> None:
    """Through a real process: exit codes, and starting imports nothing heavy."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}

    def command(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)

    start = "from lithify.cli import main; main()"
    done = command(start, "run", "total.lift", "--arg", "xs.npy")
    assert (done.returncode, done.stdout) == (0, "15.0\n")
    assert command(start, "run", "missing.lift").returncode == 2
    listed = "import sys; from lithify.cli import app; app.app; print(*sys.modules)"
    heavy = {"numpy", "llvmlite", "pyopencl", "lithify.lang", "lithify.program"}
    assert not heavy.intersection(command(listed).stdout.split())


def test_a_derivation_is_saved_before_it_is_shown(folder: Path) -> None:
    """`lithify derive --save d.json | head -1` writes the file."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = f"{sys.executable} -m lithify derive total.lift -a 64.f32 --programs --save d.json | head -1"
    subprocess.run(command, shell=True, capture_output=True, env=environment)
    assert (folder / "d.json").is_file()


def test_the_text_of_a_device(lithify: Command, opencl_device: object) -> None:
    """`-d` says the device, as everywhere; the level is the device's language if none is asked for."""
    given = ("programs.lift:double", "--arg", "64.f32")
    assert "__kernel" in lithify("source", *given, "-d", "opencl:0").out
    assert "__kernel" in lithify("source", *given, "-t", "opencl", "-d", "opencl:0").out
    kernel = lithify("source", *given, "-t", "kernel", "-d", "opencl:0")
    assert kernel.code == 0
    assert kernel.out != lithify("source", *given, "-t", "kernel").out
    assert lithify("source", *given, "-t", "lowered", "-d", "cpu").out == lithify("source", *given, "-t", "lowered").out
    other = lithify("source", *given, "-t", "c", "-d", "opencl:0")
    assert other.code == 2
    assert "--target c is not what opencl:0 takes" in other.err


def test_texts_are_broken_at_commas_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than a terminal is wide is broken between words or after commas; elsewhere lines stay whole."""
    text = "one, two, three parameters=4,mPerBlock=8,aVeryLongNameWithoutAnyCommas=1234567890,n=2 and more"
    lines = console.broken(text, 20)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= 20 or "," not in line[:-1] for line in lines)
    assert all(line.endswith((",", "three", "and", "n=2", "more")) for line in lines)
    assert lines[0] == "one, two, three"
    for terminal, count in ((True, 4), (False, 1)):
        written = io.StringIO()
        made = Console(file=written, force_terminal=terminal, width=30, soft_wrap=True, highlight=False)
        monkeypatch.setattr(console, "_console", lambda stream, made=made: made)
        console.print_rows([("a", text)])
        shown = written.getvalue().splitlines()
        assert len(shown) == count
        assert all(line.startswith("   ") for line in shown[1:])


def test_a_reader_that_has_seen_enough(folder: Path) -> None:
    """`lithify rules | head -1` ends quietly."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = f"{sys.executable} -c 'from lithify.cli import main; main()' rules | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr.lower()
