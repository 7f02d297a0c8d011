"""Program objects: a computation that can be called, moved to a device, and asked what became of it.

    module = lf.load("image.lift")
    corners = module["harris"](image, 0.04)               # NumPy in, NumPy out, on the CPU
    module["harris"].on("opencl:0")(image, 0.04)
    print(module["harris"].source(image, 0.04, target="opencl"))
    print(module["harris"].explain(image, 0.04))

The first call with arguments of some types and shapes derives, translates and compiles; the next ones only run.
Arguments are NumPy arrays, arrays of any library with DLPack (results are of that library then), Python's numbers, and
tuples of these. Methods that only need types take types instead, or their texts: `dot.source("1024.f32", "1024.f32")`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn

from lithify.lang.errors import LaunchError, LithifyError, RewriteFailed
from lithify.lang.given import kind_of, sizes_given, text_given
from lithify.program.arguments import (
    Described,
    NoArgument,
    check_argument,
    check_value,
    decide,
    describe,
    is_empty,
    is_under_construction,
    key_of,
)
from lithify.program.devices import Device, device
from lithify.program.size_classes import classes_of
from lithify.program.sources import FunctionSource, Sizes, Source
from lithify.program.specialise import Run, Specialisation
from lithify.targets.base import Quick, never

if TYPE_CHECKING:
    from lithify.explore.search import Outcome, Progress
    from lithify.kernel.ir import Program as KernelProgram
    from lithify.lang.term import Term
    from lithify.lang.types import Type
    from lithify.lang.values import Value
    from lithify.program.check import Check
    from lithify.program.explain import Explanation
    from lithify.rewrite import Derivation


class Program:
    """A program, a device and a strategy; `on`, `by` and `for_any_size` choose others and give new objects."""

    def __init__(
        self,
        source: Source,
        device_name: str | Device | None = None,
        strategy: str | None = None,
        any_size: bool = False,
        tuning: str | None = None,
    ) -> None:
        if not hasattr(source, "elaborate"):
            hint = "@lf.program makes a program of a function, lf.load and lf.parse read texts"
            raise LithifyError(f"{kind_of(source)} is no program", hint=hint)
        self.origin = source
        self.strategy = strategy
        self.any_size = any_size
        self.tuning = tuning
        self._device_name = device_name
        self._ready: dict[Hashable, Run] = {}
        self._quick: Quick = never  # of the run that was used last
        self._specialisations: dict[Hashable, Specialisation] = {}
        self._lock = RLock()

    @property
    def name(self) -> str:
        """The program's name."""
        return self.origin.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of a call."""
        return self.origin.parameters

    @property
    def annotated(self) -> bool:
        """Whether the types of all parameters are written, so that none need to be given to look at the program."""
        return self.origin.annotated

    @property
    def declared(self) -> Sequence[Type | None]:
        """The types that are written for the parameters, over sizes that are not known; None where there is none."""
        return self.origin.declared

    @property
    def device(self) -> Device:
        """Where the program runs. Raises LaunchError where there is no such device."""
        return device(self._device_name)

    def __repr__(self) -> str:
        how = f", strategy {self.strategy}" if self.strategy else ""
        return f"<program {self.name} on {self._device_name or device(None).name}{how}>"

    def __copy__(self) -> Program:
        return self  # nothing of it changes but what it remembers

    def __deepcopy__(self, _known: Any) -> Program:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"program {self.name} cannot be pickled: load or build it in the process that runs it")

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def on(self, name: str | Device) -> Program:
        """The same program on another device: "cpu", "opencl:0", "c", ..

        Raises LaunchError for a device that is not there.
        """
        return Program(self.origin, device(name), self.strategy, self.any_size, self.tuning)

    def by(self, strategy: str | None) -> Program:
        """The same program lowered by a named strategy (None: the device's default).

        Some are for devices with work-groups only, and refused on others when the program is lowered (`lithify
        strategies` says which). Raises RewriteFailed for a name that no strategy has.
        """
        if strategy is not None:
            from lithify.lowering.strategies import named

            named(text_given(strategy, "a strategy's name", "`lithify strategies` lists them", RewriteFailed))
        return Program(self.origin, self._device_name, strategy, self.any_size)

    def tuned_by(self, parameters: str | None) -> Program:
        """The same program lowered by given tuning parameters, `key=value,..`.

        None: by those that were measured to be best for its arguments, or the default; "": by the default.
        Raises RewriteFailed for a text that says no parameters.
        """
        if parameters is not None:
            from lithify.program.explored import check_parameters

            hint = "write key=value,key=value; p.tune(..) finds the best"
            check_parameters(text_given(parameters, "a set of tuning parameters", hint, RewriteFailed))
        return Program(self.origin, self._device_name, None, self.any_size, parameters)

    def for_any_size(self) -> Program:
        """The same program, compiled for arguments of all sizes, by the types written for its parameters.

        It is compiled once for each class of row lengths that calls bring: each short length, and a few ranges of long
        ones; all other sizes stay open. Compiling for the sizes at hand, as is done otherwise, gives faster kernels.
        Raises LaunchError where a parameter has no type.
        """
        if not self.annotated:
            raise LaunchError(
                f"{self.name} cannot be compiled for any sizes: its parameters' types are not written",
                hint="annotate them: (xs : n.f32) in a text, xs: lf.Array[n, lf.f32] in Python",
            )
        return Program(self.origin, self._device_name, self.strategy, any_size=True)

    def for_these_sizes(self) -> Program:
        """The same program, compiled for the sizes of its arguments: the default, which `for_any_size` leaves."""
        return Program(self.origin, self._device_name, self.strategy, False, self.tuning) if self.any_size else self

    # ---- running -----------------------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None, **named: Any) -> Any:
        """Run. Arguments come in order or by name; `sizes` gives what their shapes do not determine.

        In a function that builds a program, of its values: the program, as a part of that one.

        Returns an array, a number (NumPy's) where the result is a scalar, or nested tuples of them; `out` is filled and
        returned if it is given. Raises LithifyError (TypeMismatch, UnboundSize, LaunchError, ..) for what does not fit.
        """
        if not named and sizes is None:
            result = self._quick(arguments, out)
            if result is not NotImplemented:
                return result
        if is_under_construction((*arguments, *named.values())):
            return self._use(arguments, out, sizes, named)
        if not named and sizes is None:
            run = self._ready.get(self._kinds(arguments))
            if run is not None:
                result = run(arguments, out)
                self._quick = run.quick
                return result
        ordered = self._given(arguments, named)
        return self._run(ordered, sizes)(ordered, out)

    def as_value(self, sizes: Mapping[str, int] | None = None) -> Value:
        """The program as a value of one that is built in Python and uses it, on whatever device that one runs."""
        return self.origin.value(sizes or {})

    def _use(
        self, arguments: tuple[Any, ...], out: Any, sizes: Mapping[str, int] | None, named: Mapping[str, Any]
    ) -> Any:
        from lithify.lang.coerce import call
        from lithify.lang.place import located
        from lithify.lang.traced import to_value, traced
        from lithify.lang.values import FunctionValue

        def apply() -> Value:
            ordered = self._ordered(arguments, named)
            if out is not None:
                raise LaunchError(f"{self.name} is a part of the program here: there is no array to fill")
            value = self.as_value(dict(sizes_given(sizes, LaunchError)))
            for argument in ordered:
                if not isinstance(value, FunctionValue):
                    raise self._other_number(len(ordered))
                value = call(value, to_value(argument))
            if isinstance(value, FunctionValue):
                raise self._other_number(len(ordered))
            return value

        return traced(located(apply))

    def _other_number(self, given: int) -> LaunchError:
        """The error of a number of arguments that is not the parameters'."""
        missing = self.parameters[given:]
        what = f"no value is given for {', '.join(missing)}" if missing else f"{given} arguments are given"
        takes = f"takes {', '.join(self.parameters)}" if self.parameters else "has parameters without names"
        return LaunchError(f"{self.name}: {what}", hint=f"{self.name} {takes}")

    def _run(self, arguments: tuple[Any, ...], sizes: Mapping[str, int] | None) -> Run:
        """The compiled program for such arguments; remembered."""
        fixed = sizes_given(sizes, LaunchError)
        kinds = self._kinds(arguments)
        key: Hashable = (kinds, fixed) if fixed else kinds
        run = self._ready.get(key)
        if run is None:
            for k, argument in enumerate(arguments):
                check_value(argument, self._label(k))
        if run is None and self.any_size and is_empty(arguments, fixed):
            # kernels for any size rely on sizes of 1 or more
            run = self._ready[key] = self.for_these_sizes()._run(arguments, sizes)
        if run is None:
            with self._lock:
                found = self._specialised(arguments, fixed)
                still_open = dict(set(fixed) - set(found.sizes)) if self.any_size else None
                run = self._ready[key] = found.compiled.runner(arguments, still_open)
        return run

    def specialise(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Specialisation:
        """The program for arguments like these, with every level of its compilation (see `Specialisation`)."""
        with self._lock:
            return self._specialised(self._ordered(arguments, named), sizes_given(sizes, LaunchError))

    def _specialised(self, arguments: tuple[Any, ...], sizes: Sizes) -> Specialisation:
        least: Sizes = ()
        if self.any_size:
            arguments, (sizes, least) = (), self._class_of(arguments, sizes)
        key = (self._kinds(arguments), sizes, least)
        found = self._specialisations.get(key)
        if found is None:
            found = Specialisation(
                self.origin, self._described(arguments), sizes, self.device, self.strategy, self.tuning, least
            )
            self._specialisations[key] = found
        return found

    def _kinds(self, arguments: tuple[Any, ...]) -> tuple[Hashable, ...]:
        """What decides the arguments' types. Raises LaunchError, with the argument's name, for what is none."""
        try:
            return tuple([key_of(a) for a in arguments])
        except NoArgument:
            for k, argument in enumerate(arguments):
                check_argument(argument, self._label(k))
            raise

    def _described(self, arguments: tuple[Any, ...]) -> tuple[Described, ...]:
        return tuple([describe(a, self._label(k)) for k, a in enumerate(arguments)])

    def _label(self, position: int) -> str:
        """What errors call an argument."""
        names = self.parameters
        return names[position] if position < len(names) else str(position + 1)

    def _class_of(self, arguments: tuple[Any, ...], sizes: Sizes) -> tuple[Sizes, Sizes]:
        """What a kernel for any size may know of the sizes of such arguments (see `size_classes`)."""
        if not arguments:
            return (), ()
        declared = [type_ for _, type_ in self._specialised((), ()).elaborated.parameters]
        return classes_of(declared, decide(self._described(arguments), declared, dict(sizes)))

    def _ordered(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters."""
        if not named:
            return arguments
        names = self.parameters
        unknown = [n for n in named if n not in names]
        takes = f"{self.name} takes {', '.join(names)}" if names else f"the parameters of {self.name} have no names"
        if unknown:
            raise LaunchError(f"{self.name} has no parameter {', '.join(unknown)}", hint=takes)
        given = dict(zip(names, arguments, strict=False))
        twice = [n for n in named if n in given]
        if twice:
            raise LaunchError(f"{', '.join(twice)} is given twice, by name and in order", hint=takes)
        given.update(named)
        missing = [n for n in names if n not in given]
        if missing or len(arguments) > len(names):
            what = f"no value is given for {', '.join(missing)}" if missing else f"{len(arguments)} arguments are given"
            raise LaunchError(f"{self.name}: {what}", hint=takes)
        return tuple([given[n] for n in names])

    def _given(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments in order, where there have to be some: what is asked of types alone can do without."""
        ordered = self._ordered(arguments, named)
        if self.parameters and not ordered:
            listed = ", ".join(self.parameters)
            raise LaunchError(f"{self.name}: no value is given for {listed}", hint=f"{self.name} takes {listed}")
        return ordered

    def tune(
        self,
        *arguments: Any,
        budget: str = "30s",
        search: str = "model",
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **named: Any,
    ) -> Outcome:
        """Search the tuning parameters for arguments like these (or types) on the program's device.

        `budget` is a time (`60s`, `2m`), a number of measurements, or `all`; `search` is model, random or exhaustive.
        Arguments are copied. What is found is kept as a record, by which later calls are lowered, in other processes
        too; a search that was interrupted goes on where it was. Raises LithifyError where there is nothing to tune,
        KeyboardInterrupt (everything measured is kept) when interrupted.
        """
        from lithify.program.tune import tune

        ordered = self._given(arguments, named)
        found = tune(self, ordered, sizes=sizes, budget=budget, search_by=search, seed=seed, on_progress=on_progress)
        with self._lock:  # the next call asks the records again
            self._ready.clear()
            self._quick = never
            self._specialisations.clear()
        if found.interrupted:
            raise KeyboardInterrupt
        return found

    # ---- looking -----------------------------------------------------------------------------------------------------

    def types(
        self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any
    ) -> tuple[tuple[Type, ...], Type]:
        """The types of the parameters and of the result for such arguments."""
        program = self.specialise(*arguments, sizes=sizes, **named).elaborated
        return tuple([type_ for _, type_ in program.parameters]), program.type

    def term(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Term:
        """Level 1: the program as a term."""
        return self.specialise(*arguments, sizes=sizes, **named).elaborated.term

    def lowered(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Term:
        """Level 2: the lowered program, which says how everything is computed."""
        return self.specialise(*arguments, sizes=sizes, **named).lowered.term

    def derivation(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Derivation:
        """The rewrite steps from the program to the lowered program."""
        return self.specialise(*arguments, sizes=sizes, **named).lowered.derivation

    def kernels(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> KernelProgram:
        """Level 3: the kernels."""
        return self.specialise(*arguments, sizes=sizes, **named).kernels

    def source(
        self, *arguments: Any, target: str | Device | None = None, sizes: Mapping[str, int] | None = None, **named: Any
    ) -> str:
        """Level 4: the text for a target ("cpu": LLVM, "opencl", "c"; the program's device if none is given).

        No device is needed: for a target that this machine has no device for, the text is for a usual one.
        """
        from lithify.program.devices import for_source

        if target is None or isinstance(target, Device):
            program = self if target is None else self.on(target)
        else:
            program = self.on(for_source(text_given(target, "a target's name", 'write target="opencl"', LaunchError)))
        return program.specialise(*arguments, sizes=sizes, **named).text

    def explain(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Explanation:
        """What the program moves and computes, the least time that takes, the time it takes, and how it was derived.

        Of types instead of arrays everything but the time is said.
        """
        from lithify.program.explain import explain

        ordered = self._given(arguments, named)
        program = self.for_these_sizes().specialise(*ordered, sizes=sizes).elaborated
        return explain(self.specialise(*ordered, sizes=sizes), program, ordered)

    def check(self, *arguments: Any, sizes: Mapping[str, int] | None = None, **named: Any) -> Check:
        """Execute every level of the compilation on small data and compare (see `Check`)."""
        from lithify.lang.depth import deeply
        from lithify.program.check import check

        return deeply(check, self, self._given(arguments, named), sizes)


def program(function: Callable[..., Any]) -> Program:
    """Decorator: a Python function that builds a program from its parameters, as a program that can be called.

    Parameters annotated with types (`lf.Array[n, m, lf.f32]`) take arguments of those types only; the others take the
    type of what they are given.
    """
    if isinstance(function, type | Program) or not callable(function):
        hint = "decorate a function: @lf.program, and under it def total(xs): return lf.sum(xs)"
        raise LithifyError(f"{kind_of(function)} is no function to make a program of", hint=hint)
    made = Program(FunctionSource(function))
    made.__doc__ = function.__doc__
    return made
