"""`to[memory]`: where intermediate results are written, and where one kernel ends and the next begins."""

from __future__ import annotations

from lithify.kernel import ir
from lithify.kernel.builder import KernelScope, Translator, reads
from lithify.kernel.hardware import plan_launch
from lithify.kernel.places import Acceptor, Environment, Readable
from lithify.kernel.walk import Substitution
from lithify.lang.term import Term


@reads("to")
def _to(tr: Translator, t: Term, env: Environment) -> Readable:
    memory, value = t["memory"], t.args[0]
    if memory.name == "heap" and not tr.scope.depth:
        place = tr.allocate(t.type, memory, t)
        write_kernel(tr, t, value, place, env)
        return place.read()
    if memory.name == "heap" and tr.scope.hardware.present:
        raise tr.rejected(t, "to[heap] stands inside a kernel",
                          "bind it in front of the kernel: let x = to[heap] (..) in ..")  # fmt: skip
    place = tr.allocate(t.type, memory, t)
    tr.write(value, place, env)
    return place.read()


@reads("launch")
def _launch(tr: Translator, t: Term, env: Environment) -> Readable:
    raise tr.rejected(t, "launch roots a kernel that writes a result; here the value is read",
                      "put to[heap] around it")  # fmt: skip


def write_kernel(tr: Translator, root: Term, value: Term, acceptor: Acceptor, env: Environment) -> None:
    """Write `value` in a kernel of its own, which runs before the one under construction."""
    outer = tr.scope
    scope = tr.scope = KernelScope(plan_launch(root, tr.warp_width))
    tr.write(value, acceptor, env)
    tr.scope = outer
    if scope.block:
        tr.kernels.append(_finished(tr, scope))


def _finished(tr: Translator, scope: KernelScope) -> ir.Kernel:
    body = tuple(scope.block)
    hardware = scope.hardware
    narrow = {
        next(iter(alias.variables())): hardware.index[level]
        for (level, _), alias in scope.aliases.items()
        if alias.constant is None
    }
    if narrow:
        body = Substitution(narrow).block(body)
    name = tr.name if not tr.kernels else f"{tr.name}_{len(tr.kernels)}"
    return ir.Kernel(name, body, hardware.grid, hardware.group, hardware.variables, tuple(scope.scratch))
