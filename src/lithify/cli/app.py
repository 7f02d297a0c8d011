"""The commands and their options. What each does is in the module of its name, imported when it runs."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from lithify.cli.options import (
    Arguments,
    Budget,
    DeviceName,
    ProblemLine,
    RecordDevice,
    Reference,
    SearchName,
    Seed,
    Sizes,
    StrategyName,
)

app = typer.Typer(
    name="lithify",
    help="Write a tensor computation once as a functional program; derive fast kernels for it by checked rewriting.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
cache_app = typer.Typer(help="Compiled kernels that are kept on disk.", no_args_is_help=True)
app.add_typer(cache_app, name="cache")
records_app = typer.Typer(help="What tuning found, on this machine and on others.", no_args_is_help=True)
app.add_typer(records_app, name="records")
report_app = typer.Typer(help="Pages and pictures, made from the code and from recorded data.", no_args_is_help=True)
app.add_typer(report_app, name="report")


def _version(wanted: bool) -> None:
    if wanted:
        from lithify.version import __version__

        print(f"lithify {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Nothing of its own."""


@app.command()
def run(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    out: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--out", "-o", metavar="FILE", help="write the result: .npy or an image"),
    ] = None,
    device: DeviceName = None,
    strategy: StrategyName = None,
    time: Annotated[bool, typer.Option("--time", help="measure it")] = False,
    seed: Seed = 0,
) -> None:
    """Run a program on arrays, images and numbers."""
    from lithify.cli.run import run_program

    run_program(program, arg or [], size or [], out or [], device, strategy, time, seed)


@app.command()
def check(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    strategy: StrategyName = None,
    values: Annotated[
        bool, typer.Option("--values", help="execute every level of the compilation on small data and compare")
    ] = False,
    seed: Seed = 0,
) -> int:
    """Check a program's types, or (--values) that every level of its compilation computes the same.

    Parameters without written types are checked for those given: --arg 1000.f32.
    """
    from lithify.cli.check import check_program

    return check_program(program, arg or [], size or [], device, strategy, values, seed)


@app.command()
def derive(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    strategy: StrategyName = None,
    steps: Annotated[bool, typer.Option("--steps", help="show what each step rewrites")] = False,
    programs: Annotated[bool, typer.Option("--programs", help="show the whole program after each step")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="compare values before and after each step (small sizes)")
    ] = False,
    save: Annotated[Optional[str], typer.Option("--save", metavar="FILE", help="write the derivation")] = None,  # noqa: UP045
    replay: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--replay", metavar="FILE", help="follow a derivation that was written"),
    ] = None,
) -> None:
    """Show the rewriting that takes a program to its lowered form."""
    from lithify.cli.derive import derive_program

    derive_program(program, arg or [], size or [], device, strategy, steps, programs, verify, save, replay)


@app.command()
def source(
    program: Reference,
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--target", "-t", help="cpu (LLVM), asm, opencl, c, or program, lowered, kernel; else the device's"
        ),
    ] = None,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    strategy: StrategyName = None,
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--out", "-o", metavar="FILE", help="write it there"),
    ] = None,
) -> None:
    """Print what a program becomes: a lowered program, kernels, or the text for a target's compiler.

    Without --arg it is compiled for any size, by the types that its parameters have; with it, for that size.
    """
    from lithify.cli.source import print_source

    print_source(program, target, arg or [], size or [], device, strategy, out)


@app.command()
def rules(
    name: Annotated[Optional[str], typer.Argument(help="a rule, for its page; none lists them")] = None,  # noqa: UP045
    family: Annotated[Optional[str], typer.Option("--family", help="list one family")] = None,  # noqa: UP045
) -> None:
    """List the rewrite rules, or show one: its law, conditions and examples."""
    from lithify.cli.rules import list_rules, show_rule

    if name is None:
        list_rules(family)
    else:
        show_rule(name)


@app.command()
def strategies() -> None:
    """List the named strategies, and which devices they are for."""
    from lithify.cli.rules import list_strategies

    list_strategies()


@app.command()
def devices() -> None:
    """List the devices of this machine, and why others are missing."""
    from lithify.cli.devices import list_devices

    list_devices()


@app.command()
def bench(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--device", "-d", metavar="DEVICE", help="repeat it to compare devices"),
    ] = None,
    strategy: StrategyName = None,
    reference: Annotated[bool, typer.Option(help="time the reference evaluator, too: it is slow")] = True,
    seed: Seed = 0,
) -> None:
    """Time a program and relate it to the machine's bound."""
    from lithify.cli.bench import bench_program

    bench_program(program, arg or [], size or [], device or ["cpu"], strategy, reference, seed)


@app.command()
def explain(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    strategy: StrategyName = None,
    seed: Seed = 0,
) -> None:
    """Say how good a program's kernels are, what binds them, and why they won."""
    from lithify.cli.explain import explain_program

    explain_program(program, arg or [], size or [], device, strategy, seed)


@app.command()
def tune(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    budget: Budget = "30s",
    search: SearchName = "model",
    seed: Seed = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget what was measured of this problem before")] = False,
) -> int:
    """Find the parameters by which a program runs fastest, and keep them for all later calls."""
    from lithify.cli.tune import tune_program

    return tune_program(program, arg or [], size or [], device, budget, search, seed, fresh)


@app.command()
def explore(
    program: Reference,
    arg: Arguments = None,
    size: Sizes = None,
    device: DeviceName = None,
    budget: Budget = "60s",
    search: SearchName = "model",
    seed: Seed = 0,
    rules: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--rules", metavar="N", min=0, help="macro rules that lead to a program, at most"),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget what was measured of this program before")] = False,
    only: Annotated[bool, typer.Option("--enumerate", help="print the funnel; measure nothing")] = False,
) -> int:
    """Enumerate the rewritings of a program in phases, and search for the fastest on a device."""
    from lithify.cli.explore import explore_program

    return explore_program(program, arg or [], size or [], device, budget, search, seed, rules, fresh, only)


@records_app.command("list")
def records_list(
    device: RecordDevice = None,
    family: Annotated[Optional[str], typer.Option("--family", metavar="NAME", help="gemm, ..")] = None,  # noqa: UP045
) -> None:
    """All records, or those of a device or a family."""
    from lithify.cli.records import list_records

    list_records(device, family)


@records_app.command("show")
def records_show(
    problem: ProblemLine,
    arg: Arguments = None,
    size: Sizes = None,
    device: RecordDevice = None,
    derivation: Annotated[bool, typer.Option("--derivation", help="the saved derivation, for derive --replay")] = False,
) -> None:
    """Everything that is recorded of a problem."""
    from lithify.cli.records import show_record

    show_record(problem, arg or [], size or [], device, derivation)


@records_app.command("best")
def records_best(problem: ProblemLine, arg: Arguments = None, size: Sizes = None, device: RecordDevice = None) -> None:
    """The best parameters of a problem, and nothing else."""
    from lithify.cli.records import best_of

    best_of(problem, arg or [], size or [], device)


@records_app.command("export")
def records_export(file: Annotated[str, typer.Argument(metavar="FILE.jsonl")], device: RecordDevice = None) -> None:
    """Write the records to a file, one line each."""
    from lithify.cli.records import export_records

    export_records(file, device)


@records_app.command("merge")
def records_merge(
    files: Annotated[list[str], typer.Argument(metavar="FILE ..", help="exported, or databases")],
) -> None:
    """Take over the records of other files; of equal problems the faster one is kept."""
    from lithify.cli.records import merge_records

    merge_records(files)


@report_app.command("derivations")
def report_derivations(folder: Annotated[str, typer.Argument(metavar="FOLDER")] = "docs/derivations") -> None:
    """Write the derivations of the case studies as pages of Markdown."""
    from lithify.cli.report import write_derivations

    write_derivations(folder)


@report_app.command("names")
def report_names(folder: Annotated[str, typer.Argument(metavar="FOLDER")] = "docs") -> None:
    """Write the page of all types, operators, patterns and functions."""
    from lithify.cli.report import write_names

    write_names(folder)


@report_app.command("pictures")
def report_pictures(
    recorded: Annotated[str, typer.Argument(metavar="RESULTS", help="the folder of recorded results")],
    folder: Annotated[str, typer.Argument(metavar="FOLDER")] = "docs/pictures",
) -> None:
    """Draw the exploration: the funnel, the space, the searches, portability (needs matplotlib)."""
    from lithify.cli.report import draw_pictures

    draw_pictures(folder, recorded)


@app.command()
def doctor() -> int:
    """Find out what works on this machine, and how to enable the rest."""
    from lithify.cli.doctor import examine

    return examine()


@cache_app.command("stats")
def cache_stats() -> None:
    """What the cache holds."""
    from lithify.cli.cache import show_cache

    show_cache()


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove everything from the cache."""
    from lithify.cli.cache import clear_cache

    clear_cache()
