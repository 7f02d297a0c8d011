"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Reference = Annotated[
    str, typer.Argument(metavar="PROGRAM", help="FILE.lift, FILE.lift:name, module:name or 'gemm -t f32 -m 8 ..'")
]
Arguments = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation)
    typer.Option(
        "--arg",
        "-a",
        metavar="[NAME=]VALUE",
        help="file.npy, image.png, 2.5, random:1024x512,f32 (without a type: f32); repeat it",
    ),
]
Sizes = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--size", "-s", metavar="NAME=N", help="a size that does not follow from the arguments"),
]
DeviceName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--device", "-d", metavar="DEVICE", help="cpu, opencl:0, c (see `lithify devices`)"),
]
StrategyName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--strategy", metavar="NAME", help="lower by a named strategy instead of the device's default"),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="of random data")]
Budget = Annotated[str, typer.Option("--budget", "-b", metavar="BUDGET", help="60s, 2m, a number of measurements, all")]
ProblemLine = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="as it is listed, or as it was tuned (FILE.lift:name and --arg)")
]
RecordDevice = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--device", "-d", metavar="DEVICE", help="a device of this machine, or its name in the list"),
]
SearchName = Annotated[
    str, typer.Option("--search", metavar="NAME", help="model (few measurements), random, exhaustive")
]
