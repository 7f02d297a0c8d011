"""The way from a program and the types of its arguments to an executable, with everything remembered on disk.

One property a level, so that each can be asked for by itself and is computed once: the program's term, the lowered
program and its derivation, the kernels, the source text, the executable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from lithify.arith import ArithError, Expr, size
from lithify.lang.depth import deeply, too_deep
from lithify.lang.errors import RewriteFailed, TypeMismatch
from lithify.program.arguments import Described, Structure, flatten, nest, returner, structure_of
from lithify.program.sources import Sizes, Source
from lithify.targets.base import Quick, never

if TYPE_CHECKING:
    from lithify.explore.record import Record
    from lithify.kernel.ir import Program as KernelProgram
    from lithify.lang.module import Elaborated
    from lithify.lowering import Lowered
    from lithify.program.devices import Device
    from lithify.program.work import Work
    from lithify.rewrite import Derivation
    from lithify.targets.base import Executable

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _deeply(step: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """A step of the way, with room for programs that nest deeply."""
    try:
        return deeply(step, *args, **kwargs)
    except RecursionError:
        raise too_deep() from None


@dataclass(frozen=True)
class Compiled:
    """An executable, and how its results are nested in Python tuples."""

    executable: Executable
    result: Structure

    def runner(self, arguments: tuple[Any, ...], sizes: Mapping[str, int] | None = None) -> Run:
        """What runs it on arguments like these; `sizes` are a symbolic kernel's."""
        return Run(self, arguments, sizes)


class Run:
    """A compiled program, for arguments of some kinds: a function of the arguments and of `out` or None.

    `quick` does the same for plain arguments of just these kinds, and returns NotImplemented for all others.
    """

    def __init__(self, compiled: Compiled, arguments: tuple[Any, ...], sizes: Mapping[str, int] | None) -> None:
        self._executable, self._structure, self._sizes = compiled.executable, compiled.result, sizes
        self._convert = returner(flatten(arguments))
        given_flat = not any(isinstance(a, tuple | list) for a in arguments)
        structure = compiled.result
        self._plain = self._convert is None and structure is None and given_flat
        several = structure is not None and len(structure) > 1 and not any(structure)
        self._quickly = self._convert is None and given_flat and (structure is None or several) and not sizes
        self.quick: Quick = never

    def __call__(self, values: tuple[Any, ...], out: Any) -> Any:
        if self._quickly:
            self.quick = self._executable.quick(values)
        if self._plain:
            return self._executable(*values, out=out, sizes=self._sizes)
        given = None if out is None else flatten([out])
        results = self._executable(*flatten(values), out=given, sizes=self._sizes)
        if out is not None:
            return out
        leaves = list(results) if isinstance(results, tuple | list) else [results]
        return nest(self._structure, leaves if self._convert is None else list(map(self._convert, leaves)))


@dataclass(frozen=True)
class Specialisation:
    """A program for given types of arguments on a given device, with each level of its compilation."""

    source: Source
    described: tuple[Described, ...]
    sizes: Sizes
    device: Device
    strategy: str | None = None
    tuning: str | None = None  # parameters; None: those that were measured, or the default
    least: Sizes = ()  # bounds of symbolic sizes

    @cached_property
    def elaborated(self) -> Elaborated:
        """Level 1: the program. Raises TypeMismatch, UnboundSize, ParseError."""
        try:
            if self.sizes:
                self.source.check_sizes([name for name, _ in self.sizes])
            known: dict[str, int | Expr] = dict(self.sizes)
            known |= {name: size(name, least) for name, least in self.least}
            return _deeply(self.source.elaborate, self.described, known)
        except ArithError as error:  # a size of 0 or less where there cannot be one
            raise TypeMismatch(f"{self.source.name}: {error}") from error

    @cached_property
    def work(self) -> Work:
        """What the program moves and computes at least."""
        from lithify.program.work import work_of

        return work_of(self.elaborated.term, [type_ for _, type_ in self.elaborated.parameters])

    @cached_property
    def lowered(self) -> Lowered:
        """Level 2: the lowered program, and the derivation that leads to it."""
        return self._lower(check=False)

    def checked(self) -> Lowered:
        """Level 2, with the values before and after each step compared on random inputs (for small sizes)."""
        return self._lower(check=True)

    def _lower(self, check: bool) -> Lowered:
        from lithify.lowering import lower
        from lithify.lowering.tuning import Parameters

        term, model = self.elaborated.term, self.device.model
        if not self.chosen:
            return _deeply(lower, term, model, check=check, strategy=self.strategy)
        from lithify.program.explored import is_rewriting

        try:
            if is_rewriting(self.chosen):
                return self._lower_by_rewriting(check)
            return _deeply(lower, term, model, check=check, parameters=Parameters.parse(self.chosen))
        except RewriteFailed:
            if self.tuning is not None:
                raise
            return _deeply(lower, term, model, check=check)  # a record of another version, or of another problem

    def _lower_by_rewriting(self, check: bool) -> Lowered:
        """By what exploring found: its derivation is followed again; by its text where that was given."""
        from lithify.lowering import Lowered

        term = self.elaborated.term
        explored = None if self.tuning is not None else self._explored
        if explored is None or explored[0].parameters != self.chosen:
            from lithify.explore.phases import lower_by

            return _deeply(lower_by, self.chosen, term, self.device.model, check=check)
        record, derivation = explored
        if check:
            from lithify.program.derivations import replay

            derivation = _deeply(replay, record.derivation, term, check=True)
        return Lowered(derivation.term, derivation)

    @cached_property
    def _explored(self) -> tuple[Record, Derivation] | None:
        """What exploring found for the program, if that is what calls are lowered by."""
        from lithify.program.explored import winner_of

        return _deeply(winner_of, self)

    @cached_property
    def chosen(self) -> str:
        """The tuning parameters, or the rewriting, that the program is lowered by, as text; "" for the default.

        Those that were given; else what the records of measurements say, which is remembered on disk, so that a program
        that was compiled before need not be read again for it.
        """
        if self.tuning is not None or self.strategy is not None or not self.described:
            return self.tuning or ""
        from lithify.explore.place import state_of_records

        state = state_of_records(self.device.model.fingerprint)
        if not state:
            return ""
        from lithify.targets.cache import CACHE

        key = CACHE.key("parameters", state, *self._program())
        stored = CACHE.get(key)
        if stored is not None:
            return stored.decode()
        if self._explored is not None:
            text = self._explored[0].parameters
        else:
            from lithify.explore.choice import chosen

            found = _deeply(chosen, self.elaborated.term, self.device.model)
            text = "" if found is None else str(found)
        CACHE.put(key, text.encode())
        return text

    @cached_property
    def kernels(self) -> KernelProgram:
        """Level 3: the kernels. Raises Rejected where the lowered program does not say everything."""
        from lithify.kernel.translate import translate

        name = "".join(c if c.isalnum() and c.isascii() else "_" for c in self.source.name)
        term, parameters = self.lowered.term, self.elaborated.parameters
        return _deeply(translate, term, parameters, name=name, device=self.device.model)

    @cached_property
    def text(self) -> str:
        """Level 4: the source text for the device's compiler."""
        return _deeply(self.device.target.source, self.kernels)

    @cached_property
    def compiled(self) -> Compiled:
        """Level 5: compiled; from the disk cache when any process has compiled the same before."""
        from lithify.targets.cache import CACHE

        target, key = self.device.target, _deeply(self._key)
        stored = CACHE.get(key)
        if stored is not None:
            length = int.from_bytes(stored[:8], "little")
            head = json.loads(stored[8 : 8 + length])
            return Compiled(target.load(stored[8 + length :]), head["result"])
        executable = _deeply(target.compile, self.kernels)
        head = {"result": structure_of(self.elaborated.term.type)}
        text = json.dumps(head).encode()
        CACHE.put(key, len(text).to_bytes(8, "little") + text + executable.serialize())
        return Compiled(executable, head["result"])

    def _key(self) -> str:
        """The disk cache's key: everything that the executable depends on."""
        from lithify.targets.cache import CACHE

        return CACHE.key(
            *self._program(), self.strategy or "", self.chosen, self.device.name, self.device.target.fingerprint()
        )

    def _program(self) -> tuple[str, ...]:
        """What decides which parameters there are, and which of them are best."""
        return (
            self.source.name,
            self.source.key(lambda: self.elaborated),
            " ".join(map(str, self.described)),
            f"{self.sizes} {self.least}",
            self.device.model.fingerprint,
        )
