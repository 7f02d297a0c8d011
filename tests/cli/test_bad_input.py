"""Bad input of every kind: one message that says what and where, exit code 2, no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lithify import operators
from tests.cli.conftest import Command

XS = ("--arg", "xs.npy")

# (arguments, what the message must say)
BAD: list[tuple[tuple[str, ...], str]] = [
    # the command line itself
    (("frobnicate",), "has no command frobnicate.*the commands are run"),
    (("benchh",), "lithify has no command benchh.*did you mean bench"),
    (("records", "bst"), "lithify records has no command bst.*did you mean best"),
    (("run", "total.lift", "--argg", "3"), "lithify run has no option --argg.*did you mean --arg"),
    (("tune", "gemm", "-t", "f32"), 'lithify tune has no option -t.*a problem is one word: lithify tune "gemm -t'),
    (("devices", "-t", "f32"), "lithify devices has no option -t.*devices -h"),
    (("tune", "total.lift", "--bugdet", "3"), "did you mean --budget"),
    (("--device", "cpu", "run"), "options follow the command"),
    (("run", "total.lift", "--arg"), "requires an argument"),
    (("run",), "PROGRAM"),
    (("run", "total.lift", "--frobnicate"), "--frobnicate"),
    (("run", "total.lift", "--seed", "many"), "--seed"),
    (("run", "total.lift", *XS, "--seed", "-1"), "--seed.*0"),
    # the program
    (("run", "missing.lift", *XS), r"no file missing\.lift.*has .*total\.lift"),
    (("run", "nowhere/missing.lift"), "no directory nowhere"),
    (("run", "latin.lift", *XS), "UTF-8"),
    (("run", "total.lift:totl", *XS), "defines no totl.*did you mean total"),
    (("run", "total.lift:wholly-other", *XS), "it defines total"),
    (("run", "programs.lift", *XS), "defines 6 programs.*say which: programs.lift:"),
    (("run", "empty.lift"), "defines no program"),
    (("run", "total"), r"no program.*FILE\.lift"),
    (("run", "total:total"), r"no module total.*did you mean total\.lift"),
    (("run", "no_such_module:f"), "no module no_such_module"),
    (("run", ":f"), "no file or module before the colon"),
    (("run", "json:dumps"), "json:dumps is a function.*lithify.program"),
    (("run", "json:nope"), "json has no nope"),
    (("run", "lithify.operators.image:harriss"), "defines no harriss.*did you mean harris"),
    # its text
    (("run", "broken.lift:f", *XS), r"never closed\nbroken\.lift, line 1, column 11:\n    f = .*\n {14}\^"),
    (("run", "unknown.lift", *XS), r"unknown name `nope`.*unknown\.lift, line 1, column 16.*\^\^\^\^"),
    (("check", "broken.lift"), r"line 1, column 11"),
    # how arguments are written
    (("run", "total.lift"), "no argument is given for xs.*total takes xs"),
    (("run", "programs.lift:dot", *XS), "no argument is given for ys"),
    (("run", "total.lift", "--arg", "zs=xs.npy"), "no parameter zs.*takes xs"),
    (("run", "total.lift", *XS, "--arg", "xs=xs.npy"), "given twice"),
    (("run", "total.lift", "--arg", "xs=xs.npy", "--arg", "xs=xs.npy"), "xs is given twice"),
    (("run", "programs.lift:dot", "--arg", "xs=xs.npy", "--arg", "xs.npy"), "has no name, but follows"),
    (("run", "total.lift", *XS, *XS), "too many arguments for `total`: 2 given"),
    (("run", "total.lift", "--arg", ""), "no argument"),
    (("run", "total.lift", "--arg", "!?"), r"`!\?` is no argument.*random:1024x512,f32"),
    (("run", "total.lift", "--arg", "hello"), "`hello` is no argument"),
    (("run", "total.lift", "--arg", "6.f32"), "is a type, a value is needed.*random:6,f32"),
    # made data
    (("run", "total.lift", "--arg", "random:6,f33"), "no scalar type `f33`.*did you mean"),
    (("run", "total.lift", "--arg", "random:6,quux"), "no scalar type `quux`.*the types are"),
    (("run", "total.lift", "--arg", "random:nan,f32"), "`nan`.*not a length"),
    (("run", "total.lift", "--arg", "random:-3,f32"), "`-3`.*not a length"),
    (("run", "total.lift", "--arg", "random:2.5,f32"), r"`2\.5`.*not a length"),
    (("run", "total.lift", "--arg", "random:,f32"), "``.*not a length"),
    (("run", "total.lift", "--arg", "random:1000000x100000000,f32"), "more than fit"),
    # files
    (("run", "total.lift", "--arg", "ys.npy"), r"no file ys\.npy.*did you mean xs\.npy"),
    (("run", "total.lift", "--arg", "nowhere/xs.npy"), "no directory nowhere"),
    (("run", "total.lift", "--arg", "text.npy"), r"text\.npy cannot be read"),
    (("run", "total.lift", "--arg", "cut.npy"), r"cut\.npy cannot be read"),
    (("run", "total.lift", "--arg", "objects.npy"), r"objects\.npy cannot be read"),
    (("run", "total.lift", "--arg", "notes.txt"), "neither a .npy file nor an image"),
    (("run", "programs.lift:invert", "--arg", "text.png"), r"text\.png is not an image"),
    (("run", "programs.lift:invert", "--arg", "grey.png,f33"), "no scalar type `f33`"),
    (("run", "total.lift", "--arg", "missing.png"), r"no file missing\.png"),
    # types that do not fit
    (("run", "programs.lift:dot", *XS, "--arg", "doubles.npy"), r"f32.*f64"),
    (("run", "programs.lift:dot", *XS, "--arg", "random:7,f32"), r"6.*7.*programs\.lift, line 2"),
    (("run", "programs.lift:scal", "--arg", "2", "--arg", "doubles.npy"), r"f32.*f64|f64.*f32"),
    (("run", "programs.lift:invert", *XS), r"programs\.lift, line 4"),
    (
        ("run", "programs.lift:scal", "--arg", "2", "--arg", "random:1x6,f32"),
        r"n\.f32 expected, 1\.6\.f32 given.*1 dimension is expected, it has 2: \.reshape\(6\)",
    ),
    (("run", "programs.lift:invert", "--arg", "2.5"), "array"),
    (("run", "total.lift", "--arg", "xs.npy,bool"), "bool"),
    (("run", "programs.lift:scal", "--arg", "xs.npy", *XS), r"6\.f32"),
    (("run", "programs.lift:scal", "--arg", "2.5,i32", *XS), "2.5 is not a value of i32"),
    (("run", "programs.lift:scal", "--arg", "300,i8", *XS), "300 is not a value of i8"),
    (("run", "programs.lift:scal", "--arg", "1+2j,f32", *XS), "is not a value of f32"),
    # sizes
    (("run", "programs.lift:blocks", *XS), "not known: blockSize.*--size blockSize="),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=nan"), "blockSize=nan: a size is a whole number"),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=-2"), "blockSize=-2: a size is a whole number"),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=1.5"), "a size is a whole number"),
    (("run", "programs.lift:blocks", *XS, "--size", "3"), "--size 3 has no name"),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=2", "--size", "blockSize=3"), "given twice"),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=4"), r"4.*6|6.*4"),
    (("run", "programs.lift:blocks", *XS, "--size", "blockSize=0"), "cannot divide 6 by 0"),
    # devices, strategies, targets
    (("run", "total.lift", *XS, "--device", "gpu"), "no device 'gpu'.*devices of this machine are cpu"),
    (("run", "total.lift", *XS, "--device", "cpu:3"), "no device 'cpu:3'"),
    (("run", "total.lift", *XS, "--device", "opencl:99"), "OpenCL device"),
    (("check", "programs.lift", "--strategy", "reduction-9"), "no strategy named reduction-9.*did you mean"),
    (("check", "programs.lift", "--device", "gpu"), "no device 'gpu'"),
    (("check", "total.lift", "--arg", "6.f32", "--strategy", "reduction-9"), "no strategy named reduction-9"),
    (("run", "total.lift", *XS, "--strategy", "reduction-9"), "no strategy named reduction-9.*did you mean"),
    (("derive", "programs.lift:double", *XS, "--strategy", "reduction-1"), "reduction-1 is for"),
    (("source", "total.lift", "--target", "fortran", "--arg", "6.f32"), "no target fortran.*opencl"),
    (("source", "total.lift", "--target", "kernels", "--arg", "6.f32"), "no target kernels.*did you mean kernel"),
    (
        ("source", "total.lift", "--target", "cuda", "--arg", "6.f32"),
        "no target cuda.*targets are program,.*opencl, c",
    ),
    (("source", "total.lift", "--target", "opencll", "--arg", "6.f32"), "did you mean opencl.*targets are program"),
    (("run", "total.lift", *XS, "--device", "opencll:0"), "did you mean.*devices of this machine are cpu"),
    (("run", "total.lift", *XS, "--strategy", "reductions"), "did you mean.*there are reduction-1, .*tiled"),
    (("run", "total.lift", "--arg", "random:6,f33"), "did you mean.*the types are bool, "),
    (("check", "total.lift", "--arg", "6.f33"), "did you mean f32.*the types are bool, "),
    (("tune", "total.lift", "--arg", "6.f32", "--search", "modell"), "no search `modell`|is of no family"),
    (("explore", "total.lift", "--arg", "6.f32", "--search", "best"), "no search `best`.*model, random, exhaustive"),
    (("records", "list", "--family", "gem"), "no family gem.*did you mean gemm.*the families are gemm"),
    # results
    (("run", "total.lift", *XS, "-o", "result.txt"), "result.txt: results are written as"),
    (("run", "programs.lift:double", *XS, "-o", "nowhere/result.npy"), "no directory nowhere"),
    (("run", "programs.lift:double", *XS, "-o", "result.png"), r"rows and columns.*6\.f32"),
    (("run", "programs.lift:double", *XS, "-o", "a.npy", "-o", "b.npy"), "1 result.*2 files"),
    # derivations, rules
    (("derive", "total.lift", *XS, "--replay", "missing.json"), r"missing\.json cannot be read"),
    (("derive", "total.lift", *XS, "--replay", "notes.txt"), "--replay notes.txt.*no saved derivation.*--save"),
    (("derive", "total.lift", *XS, "--replay", "latin.lift"), "--replay latin.lift.*it is no text"),
    (("derive", "total.lift", "--arg", "100000000.f32", "--verify"), "cannot be compared at this size.*smaller"),
    (("derive", "total.lift", *XS, "--save", "nowhere/d.json"), "cannot be written"),
    (("derive", "total.lift", *XS, "--replay", "d.json", "--strategy", "reduction-1"), "exclude each other"),
    (("rules", "split-joint"), "no rule split-joint.*did you mean split-join"),
    (("rules", "--family", "frobnication"), "no family frobnication.*fusion"),
    (("cache", "frobnicate"), "frobnicate"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_bad_input(lithify: Command, arguments: tuple[str, ...], message: str) -> None:
    outcome = lithify(*arguments)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert re.search(message, outcome.err, re.DOTALL), outcome.err
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) <= 24, outcome.err


def test_the_users_module_is_broken(lithify: Command, folder: Path) -> None:
    (folder / "broken_module.py").write_text("import lithify\nx = 1 / 0\n")
    outcome = lithify("run", "broken_module:f")
    assert outcome.code == 2
    assert "ZeroDivisionError" in outcome.err
    assert "broken_module.py, line 2: x = 1 / 0" in outcome.err


def test_a_missing_import_of_the_users_module_is_told(lithify: Command, folder: Path) -> None:
    (folder / "importing.py").write_text("import no_such_package_at_all\n")
    outcome = lithify("run", "importing:f")
    assert outcome.code == 2
    assert "no_such_package_at_all" in outcome.err


def test_a_defect_of_ours_is_one_line(lithify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from lithify.program import Program

    def broken(*_: object, **__: object) -> None:
        raise AssertionError("the impossible happened")

    monkeypatch.setattr(Program, "__call__", broken)
    outcome = lithify("run", "total.lift", *XS)
    assert outcome.code == 1
    assert "this is a defect of lithify: AssertionError: the impossible happened" in outcome.err
    assert "LITHIFY_DEBUG=1" in outcome.err
    assert "Traceback" not in outcome.err
    monkeypatch.setenv("LITHIFY_DEBUG", "1")
    with pytest.raises(AssertionError):
        lithify("run", "total.lift", *XS)


def test_not_enough_memory(lithify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from lithify.program import Program

    def hungry(*_: object, **__: object) -> None:
        raise MemoryError("unable to allocate 9 TiB")

    monkeypatch.setattr(Program, "__call__", hungry)
    outcome = lithify("run", "total.lift", *XS)
    assert outcome.code == 2
    assert "9 TiB" in outcome.err


def test_images_without_pillow(lithify: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    outcome = lithify("run", "programs.lift:invert", "--arg", "grey.png")
    assert outcome.code == 2
    assert "lithify[images]" in outcome.err


def test_check_finds_unknown_functions_of_templates(lithify: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.lift"
    file.write_text("f xs = mapp (+ 1) xs\n")
    result = lithify("check", str(file))
    assert result.code == 2
    assert "unknown name `mapp`" in result.err
    assert "did you mean map" in result.err
    file.write_text("f xs = (map (+ 1) . revers) xs\n")
    assert "did you mean reverse" in lithify("check", str(file)).err


@pytest.mark.parametrize("size", ["q=3", "blocksize=3", "loc=3"])
def test_sizes_that_the_program_does_not_have(lithify: Command, tmp_path: Path, size: str) -> None:
    file = tmp_path / "p.lift"
    file.write_text("f xs = map sum (split block xs)\n")
    result = lithify("run", f"{file}:f", "--arg", "random:6,f32", "--size", "block=3", "--size", size)
    assert result.code == 2
    assert f"has no size {size[:-2]}" in result.err


@pytest.mark.parametrize("file", sorted((Path(operators.__file__).parent).glob("*.lift")), ids=lambda f: f.stem)
def test_the_programs_that_are_shipped_are_no_bad_input(lithify: Command, file: Path) -> None:
    result = lithify("check", str(file))
    assert result.code == 0, result.err


def test_check_goes_on_after_a_program_that_is_wrong(lithify: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.lift"
    file.write_text("f (xs : n.f32) = slide (n + 2) 1 xs\ng (xs : n.f32) = sum xs\n")
    result = lithify("check", str(file))
    assert result.code == 2
    assert "(n + 2) <= n + 1 does not hold" in result.err
    assert "g : n.f32 -> f32" in result.out


def test_check_says_what_must_hold_of_sizes(lithify: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.lift"
    file.write_text("f (xs : n.f32) = slide 3 1 xs\ng (xs : n.m.f32) = split k (join xs)\n")
    result = lithify("check", str(file))
    assert result.code == 0, result.err
    assert "f : n.f32 -> (n - 2).3.f32   (fits where 2 <= n)" in result.out
    assert "(fits where k divides m*n; a call gives k)" in result.out
    assert lithify("check", f"{file}:f").out == result.out.splitlines()[0] + "\n"
    assert "(fits where 3 divides m*n)" in lithify("check", str(file), "--size", "k=3").out
    assert lithify("run", f"{file}:f", "--arg", "random:6,f32", "--size", "k=3").code == 2
    assert lithify("check", f"{file}:f", "--arg", "5.f32").code == 0
    assert lithify("check", f"{file}:f", "--arg", "1.f32").code == 2
