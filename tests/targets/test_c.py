"""The target `c`: compiled with the system's compiler, warnings as errors, against NumPy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import SCALARS, f32, f64
from lithify.targets.c import CompileError, CTarget, compiler, find_compiler, write
from lithify.targets.c.source import program_source
from tests.targets.group_programs import CASES, Case, close
from tests.targets.thread_programs import THREAD_CASES, row_sums

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
PLAIN = CTarget(("-O1",), openmp=False)


def check(target: CTarget, case: Case) -> None:
    got = target.compile(case.program)(*case.arguments)
    for one, wanted in zip(got if isinstance(got, tuple) else (got,), case.expected, strict=True):
        assert one.shape == wanted.shape
        if np.iscomplexobj(wanted):
            np.testing.assert_array_equal(one, wanted)
        else:
            close(one, wanted)


@pytest.mark.parametrize("name", THREAD_CASES)
def test_threads(name: str) -> None:
    """Optimised, with OpenMP where the compiler has it."""
    check(CTarget(), THREAD_CASES[name]())


def test_without_openmp() -> None:
    check(PLAIN, THREAD_CASES["row reversals"]())


def test_loaded_from_bytes() -> None:
    case = THREAD_CASES["row sums"]()
    close(PLAIN.load(PLAIN.compile(case.program).serialize())(*case.arguments), case.expected[0])
    with pytest.raises(LithifyError, match="not a C program"):
        PLAIN.load(b"something else")


def test_timing() -> None:
    case = THREAD_CASES["row sums"]()
    seconds = PLAIN.compile(case.program).time(case.arguments, 4)
    assert len(seconds) == 4
    assert all(s > 0 for s in seconds)


def test_groups_are_refused() -> None:
    with pytest.raises(LithifyError, match="a kernel for work-groups, which C does not have"):
        PLAIN.source(CASES["transpose"]().program)


def test_an_error_shows_the_compilers_words() -> None:
    with pytest.raises(CompileError, match=r"(?s)does not compile a generated program.*no_such_name"):
        compiler.shared_library("int f(void) { return no_such_name; }", ("-O0",))


# ---- the files that are shipped --------------------------------------------------------------------------------------

_MAIN = """#include <stdio.h>
#include <stdlib.h>
#include "{header}"

static void *filled(const char *path, size_t bytes) {{
  void *data = malloc(bytes ? bytes : 1);
  FILE *file = fopen(path, "rb");
  if (!data || !file || fread(data, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  return data;
}}

int main(void) {{
{inputs}
{outputs}
  int status = {call};
{written}
  return status;
}}
"""

_TYPES = {f32: "float", f64: "double", SCALARS["i32"]: "int32_t", SCALARS["f16"]: "uint16_t"}


def run_as_a_program(case: Case, folder: Path, options: tuple[str, ...]) -> list[Any]:
    """Write the program's files and a main function; compile, run in a process of its own; the results."""
    text, header = write(case.program, folder)
    inputs, outputs, written = [], [], []
    for buffer, value in zip(case.program.parameters, case.arguments, strict=True):
        np.asarray(value, buffer.scalar.dtype).tofile(folder / buffer.name)
        bytes_ = np.asarray(value).nbytes
        inputs.append(f'  {_TYPES[buffer.scalar]} *{buffer.name} = filled("{buffer.name}", {bytes_});')
    for buffer, value in zip(case.program.results, case.expected, strict=True):
        type_ = _TYPES[buffer.scalar]
        outputs.append(f"  {type_} *{buffer.name} = malloc({max(1, value.size)} * sizeof({type_}));")
        written += [f'  FILE *f_{buffer.name} = fopen("{buffer.name}", "wb");',
                    f"  fwrite({buffer.name}, sizeof({type_}), {value.size}, f_{buffer.name});",
                    f"  fclose(f_{buffer.name});", f"  free({buffer.name});"]  # fmt: skip
    written += [f"  free({b.name});" for b in case.program.parameters]
    shapes: dict[str, int] = {}
    for buffer, value in zip(case.program.parameters, case.arguments, strict=True):
        shapes |= {str(d): int(n) for d, n in zip(buffer.shape, np.shape(value), strict=True)}
    source = program_source(case.program)
    names = [b.name for b in (*case.program.parameters, *case.program.results)] + [str(shapes[n]) for n in source.sizes]
    main = _MAIN.format(header=header.name, inputs="\n".join(inputs), outputs="\n".join(outputs),
                        call=f"{source.function}({', '.join(names)})", written="\n".join(written))  # fmt: skip
    (folder / "main.c").write_text(main)
    command = [compiler.compiler(), *compiler.WARNINGS, *options, "main.c", text.name, "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [
        np.fromfile(folder / b.name, b.scalar.dtype).reshape(value.shape)
        for b, value in zip(case.program.results, case.expected, strict=True)
    ]


@pytest.fixture(scope="module")
def sanitizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that turn the sanitizers on, where compiler and machine have them."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    options = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    command = [compiler.compiler(), *options, "main.c", "-o", "main"]
    built = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if built.returncode or subprocess.run(["./main"], cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("the C compiler has no sanitizers (gcc: libasan, libubsan)")
    return options


@pytest.mark.parametrize(
    "name", ["row sums", "row reversals", "lane sums with a tail", "counts", "largest f16", "in place",
             "symbolic outer product", "symbolic, empty"]
)  # fmt: skip
def test_sanitizers_find_nothing(name: str, tmp_path: Path, sanitizers: tuple[str, ...]) -> None:
    case = THREAD_CASES[name]()
    for got, wanted in zip(run_as_a_program(case, tmp_path, ("-O1", *sanitizers)), case.expected, strict=True):
        close(got, wanted)


def test_sanitizers_find_a_mutant(tmp_path: Path, sanitizers: tuple[str, ...]) -> None:
    """One row more than there is."""
    case = row_sums(7, 13)
    (kernel,) = case.program.kernels
    (rows,) = kernel.body
    assert isinstance(rows, ir.Loop)
    longer = ir.Loop(rows.variable, rows.extent + 1, rows.level, rows.body)
    changed = ir.Program("k", case.program.parameters, case.program.results, (),
                         (ir.Kernel("k", (longer,), scratch=kernel.scratch),))  # fmt: skip
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        run_as_a_program(Case(changed, case.arguments, case.expected), tmp_path, ("-O1", *sanitizers))


@pytest.mark.parametrize("name", THREAD_CASES)
def test_header_is_c_plus_plus_too(name: str, tmp_path: Path) -> None:
    found = shutil.which("c++")
    if found is None:
        pytest.skip("no C++ compiler on this machine")
    _, header = write(THREAD_CASES[name]().program, tmp_path)
    (tmp_path / "main.cpp").write_text(
        f'#include "{header.name}"\n#include "{header.name}"\nint main() {{ return 0; }}\n'
    )
    subprocess.run([found, "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "main.cpp"], cwd=tmp_path, check=True)
