"""The C11 text of a kernel program: one file and its header, which need nothing but libm."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.arith import Expr
from lithify.kernel.ir import Buffer, Program
from lithify.lang.errors import LithifyError
from lithify.targets.c.dialect import C
from lithify.targets.cdialect.auxiliaries import auxiliary_texts
from lithify.targets.cdialect.declarations import Parameters, parameters_of
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.indices import IndexPrinter
from lithify.targets.cdialect.names import KEYWORDS, Names, identifier
from lithify.targets.cdialect.statements import KernelPrinter
from lithify.targets.cdialect.text import Text

ALIGNMENT = 64

_INCLUDES = """#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
"""

_MACROS = """#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#define ATOMIC _Pragma("omp atomic")
#define CRITICAL _Pragma("omp critical")
#else
#define PARALLEL_FOR
#define ATOMIC
#define CRITICAL
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define LANES _Pragma("GCC ivdep")
#else
#define LANES
#endif
#define ALIGNED(bytes) _Alignas(bytes)
"""

_THREADS = """static inline int thread_number(void) {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

static inline int thread_count(void) {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}"""


@dataclass(frozen=True, slots=True)
class Source:
    """The two files of a program. `function` is the name to call, `sizes` the names of its size parameters in order."""

    function: str
    text: str
    header: str
    sizes: tuple[str, ...]

    @property
    def standalone(self) -> str:
        """The text with the header's declarations in the place of its inclusion."""
        return self.text.replace(f'#include "{self.function}.h"\n', self.header)


def program_source(program: Program) -> Source:
    """C for all kernels of a program and a function that runs them one after another."""
    function = identifier(program.name)
    if function in KEYWORDS | C.reserved:
        function += "_"
    names = Names(KEYWORDS | C.reserved | {function})
    auxiliaries: set[str] = set()
    kernels: list[str] = []
    calls: list[_Call] = []
    for kernel in program.kernels:
        if kernel.grid or kernel.group:
            raise LithifyError(
                f"{kernel.name} is a kernel for work-groups, which C does not have",
                hint="lower the program for the CPU: levels par, seq, unroll and vec",
            )
        parameters = parameters_of(kernel, (*program.parameters, *program.results, *program.temporaries))
        printer = KernelPrinter(kernel, parameters, C, 64)
        name = names.fresh(f"{kernel.name}_kernel" if kernel.name in (program.name, function) else kernel.name)
        lines = [*_heading(parameters), *_head(name, parameters, printer), *printer.body(), "}"]
        kernels.append("\n".join(lines))
        auxiliaries |= printer.values.auxiliaries
        calls.append(_Call(name, parameters, printer.workspace_bytes))
    buffers = (*program.parameters, *program.results, *program.temporaries)
    complex_types = {b.scalar.name for b in buffers if b.scalar.is_complex}
    threads = [_THREADS] if any(call.needs_workspace for call in calls) else []
    own = [text for text in auxiliary_texts(auxiliaries | complex_types, C) if not text.startswith("typedef")]
    main = _Main(program, function, calls)
    includes = f'#include "{function}.h"\n' + _INCLUDES
    text = "\n\n".join([includes + "\n" + _MACROS.rstrip(), *threads, *own, *kernels, main.definition()]) + "\n"
    needs = auxiliaries | complex_types
    types = [t for t in auxiliary_texts(needs, C) if t.startswith("typedef")]
    return Source(function, text, _header(function, types, main), tuple(v.name for v in program.sizes))


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    parameters: Parameters
    workspace: Expr

    @property
    def needs_workspace(self) -> bool:
        return self.workspace.constant != 0


class _Main:
    """The function that is called from outside: allocates temporaries and runs the kernels."""

    def __init__(self, program: Program, function: str, calls: list[_Call]) -> None:
        self._program, self._function, self._calls = program, function, calls
        names = Names(KEYWORDS | C.reserved | {function, "status", "workspace_bytes", *(c.name for c in calls)})
        self._names = {b: names.fresh(b.name) for b in (*program.parameters, *program.results, *program.temporaries)}
        self._indices = IndexPrinter(C, 64, set(), lambda atom: _no_load(program.name))
        for size in program.sizes:
            self._indices.declare(size, names.fresh(size.name))

    def prototype(self) -> str:
        declared = [_parameter(b, self._names[b]) for b in (*self._program.parameters, *self._program.results)]
        declared += [f"int64_t {self._indices.names[v]}" for v in self._program.sizes]
        return f"int {self._function}({', '.join(declared) or 'void'})"

    def description(self) -> str:
        def listed(buffers: tuple[Buffer, ...]) -> str:
            return ", ".join(_described(b, self._names[b]) for b in buffers) or "nothing"

        return f"{listed(self._program.parameters)} -> {listed(self._program.results)}"

    def definition(self) -> str:
        lines = [f"{self.prototype()} {{"]
        allocated = [self._names[b] for b in self._program.temporaries]
        for b in self._program.temporaries:
            lines.append("  " + self._allocation(_element(b), self._names[b], self._size_text(b)))
        if any(call.needs_workspace for call in self._calls):
            lines += self._workspace()
            allocated.append("workspace")
        if allocated:
            lines.append(f"  int status = {' && '.join(allocated)} ? 0 : 1;")
            lines.append("  if (status == 0) {")
        indent = "    " if allocated else "  "
        for call in self._calls:
            given = [self._names[b] for b in call.parameters.buffers]
            given += [self._indices.names[v] for v in call.parameters.sizes]
            given += ["workspace"] if call.needs_workspace else []
            lines.append(f"{indent}{call.name}({', '.join(given)});")
        if allocated:
            lines.append("  }")
            lines += [f"  free({name});" for name in allocated]
        lines += [f"  (void){name};" for name in self._unused()]
        return "\n".join([*lines, f"  return {'status' if allocated else '0'};", "}"])

    def _unused(self) -> list[str]:
        used = {b for call in self._calls for b in call.parameters.buffers}
        sizes = {v for call in self._calls for v in call.parameters.sizes}
        sizes |= {v for b in self._program.temporaries for v in b.count.variables()}
        sizes |= {v for call in self._calls for v in call.workspace.variables()}
        buffers = [b for b in (*self._program.parameters, *self._program.results) if b not in used]
        return [self._names[b] for b in buffers] + [
            self._indices.names[v] for v in self._program.sizes if v not in sizes
        ]

    def _size_text(self, buffer: Buffer) -> str:
        return self._bytes_text(buffer.bytes)

    def _bytes_text(self, size: Expr) -> str:
        return self._indices.text(size, 64).text if size.terms else str(size.constant)

    def _workspace(self) -> list[str]:
        """What every thread has for itself: as much as the kernel that needs most."""
        needed = list(dict.fromkeys(call.workspace for call in self._calls))
        known = max((w.constant for w in needed if w.constant is not None), default=0)
        unknown = [self._bytes_text(w) for w in needed if w.constant is None]
        if not unknown:
            return ["  " + self._allocation("char", "workspace", f"(size_t)thread_count() * {known}")]
        lines = [f"  int64_t workspace_bytes = {known};"]
        lines += [f"  if ({each} > workspace_bytes) workspace_bytes = {each};" for each in unknown]
        size = "(size_t)thread_count() * (size_t)workspace_bytes"
        return ["  " + line.strip() for line in (*lines, self._allocation("char", "workspace", size))]

    @staticmethod
    def _allocation(element: str, name: str, size: str) -> str:
        """A multiple of the alignment, as aligned_alloc wants it, and never nothing."""
        rounded = f"((size_t)({size}) + {ALIGNMENT}) / {ALIGNMENT} * {ALIGNMENT}"
        return f"{element} *{name} = aligned_alloc({ALIGNMENT}, {rounded});"


def _no_load(name: str) -> Text:
    raise LithifyError(f"a size of {name} is read from a buffer")


def _header(function: str, types: list[str], main: _Main) -> str:
    guard = f"{function.upper()}_H"
    typedefs = "".join(t + "\n" for t in types) + ("\n" if types else "")
    return f"""#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

{typedefs}#ifdef __cplusplus
extern "C" {{
#endif

// {main.description()}
// Arrays are row-major and do not overlap.
// Returns 0, or 1 when memory for temporaries ran out.
{main.prototype()};

#ifdef __cplusplus
}}
#endif

#endif
"""


def _described(buffer: Buffer, name: str) -> str:
    return f"{name} : {'.'.join([*map(str, buffer.shape), buffer.scalar.name])}"


def _heading(parameters: Parameters) -> list[str]:
    return [f"// {_described(b, b.name)}" for b in parameters.buffers]


def _head(name: str, parameters: Parameters, printer: KernelPrinter) -> list[str]:
    declared = [
        _kernel_parameter(b, printer.values.places[b].name, b in parameters.written) for b in parameters.buffers
    ]
    declared += [f"{printer.size_types[v]} {printer.values.indices.names[v]}" for v in parameters.sizes]
    declared += ["char *workspace"] if printer.workspace_bytes.constant != 0 else []
    return [f"static void {name}({', '.join(declared) or 'void'}) {{"]


def _element(buffer: Buffer) -> str:
    storage = C.storage.get(buffer.scalar)
    return C.types[buffer.scalar] if storage is None else storage.parameter


def _parameter(buffer: Buffer, name: str) -> str:
    """A parameter of the outer function, which C++ must be able to read, too: no `restrict`."""
    if buffer.role == "scalar":
        return f"{C.types[computed(buffer.scalar)]} {name}"
    return f"{'const ' if buffer.role == 'input' else ''}{_element(buffer)} *{name}"


def _kernel_parameter(buffer: Buffer, name: str, written: bool) -> str:
    if buffer.role == "scalar":
        return _parameter(buffer, name)
    return f"{'' if written else 'const '}{_element(buffer)} *{C.restrict} {name}"
