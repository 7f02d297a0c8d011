"""Arguments and sizes as they are written on the command line.

An argument is `[name=]value[,type]`, its value one of

* a number: `2.5`, `3`, `1e-3`, `1+2j`, `true`, `inf`;
* made data: `random:1024x512,f32` (between 0 and 1; whole numbers for integers, any that fit where a parameter's type
  says indices), `zeros:..`, `ones:..`, `range:..`;
* a file: `data.npy`, `photo.png` (grey, between 0 and 1, rows first), `photo.png,rgb`, `photo.png,u8`;
* where only types matter, a type: `1024.512.f32`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.lang.errors import LithifyError
from lithify.lang.spelling import choices, meant

if TYPE_CHECKING:
    import numpy as np

    from lithify.lang.scalars import Scalar
    from lithify.lang.types import Type
    from lithify.program import Program

    Array = np.ndarray[Any, np.dtype[Any]]

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"})
_NAME = re.compile(r"([^\W\d]\w*'*)=(.*)", re.DOTALL)
_MADE = re.compile(r"(random|zeros|ones|range):(.*)")
_TYPE = re.compile(r"(?:\w+\.)*\w+")
_FORMS = "an argument is a number, random:1024x512,f32, a .npy file or an image"


# ---- arguments -------------------------------------------------------------------------------------------------------


def read_arguments(
    program: Program, written: Sequence[str], sizes: dict[str, int], seed: int, *, types: bool = False
) -> tuple[Any, ...]:
    """The arguments of a call, in the order of the parameters; `types`: types will do. Raises LithifyError."""
    from numpy.random import default_rng

    random = default_rng(seed)
    names = program.parameters
    in_order: list[Any] = []
    by_name: dict[str, Any] = {}
    numbers: list[str] = []  # the parameters that are to have random numbers, of no type that is written but integers
    for position, text in enumerate(written):
        name, value = _split_name(text, names)
        label = name or (names[position] if position < len(names) else f"argument {position + 1}")
        try:
            read = _read(value, random, types)
        except LithifyError as error:
            error.message = f"--arg {label}: {error.message}" if name or names else f"--arg: {error.message}"
            raise
        if _is_random_numbers(value):
            numbers.append(label)
        if not name:
            if by_name:
                raise LithifyError(f"--arg {text} has no name, but follows arguments that have one")
            in_order.append(read)
        elif name in by_name:
            raise LithifyError(f"--arg {name} is given twice")
        else:
            by_name[name] = read
    return _with_indices(program, _complete(program, in_order, by_name), numbers, sizes, random)


def read_types(program: Program, written: Sequence[str], sizes: dict[str, int], seed: int) -> tuple[Any, ...]:
    """The arguments of a call, or types in their place; none need to be written where the program says all types."""
    if written or not program.annotated:
        return read_arguments(program, written, sizes, seed, types=True)
    return program.types(sizes=sizes)[0]


def read_fixed_types(program: Program, written: Sequence[str], sizes: dict[str, int]) -> tuple[Any, ...]:
    """`read_types`, but none where nothing says the sizes: then the program is one for any size."""
    if written or not program.annotated:
        return read_arguments(program, written, sizes, 0, types=True)
    return _declared(program, sizes)


def _declared(program: Program, sizes: dict[str, int]) -> tuple[Type, ...]:
    """The types that a program says itself; none where they leave a size open."""
    from lithify.lang.types import sizes_in

    types = program.types(sizes=sizes)[0]
    return () if any(size.constant is None for type_ in types for size in sizes_in(type_)) else types


def read_values(program: Program, written: Sequence[str], sizes: dict[str, int], seed: int) -> tuple[Any, ...]:
    """The arguments of a call; random ones where none are written and the program says all types, with their sizes."""
    from numpy.random import default_rng

    from lithify.program.check import sample

    types = _declared(program, sizes) if not written and program.annotated else ()
    if not types:
        return read_arguments(program, written, sizes, seed)
    random = default_rng(seed)
    return tuple([sample(type_, random) for type_ in types])


def _complete(program: Program, in_order: list[Any], by_name: dict[str, Any]) -> tuple[Any, ...]:
    names = program.parameters
    takes = f"{program.name} takes {', '.join(names)}" if names else f"the parameters of {program.name} have no names"
    unknown = [n for n in by_name if n not in names]
    if unknown:
        raise LithifyError(f"{program.name} has no parameter {', '.join(unknown)}", hint=takes)
    if len(in_order) > len(names) and by_name:
        raise LithifyError(f"{len(in_order)} arguments without a name are too many", hint=takes)
    given = dict(zip(names, in_order, strict=False))
    twice = [n for n in by_name if n in given]
    if twice:
        raise LithifyError(f"{', '.join(twice)} is given twice, by name and in order", hint=takes)
    given |= by_name
    missing = [n for n in names if n not in given]
    if missing:
        what = ", ".join(missing)
        raise LithifyError(f"no argument is given for {what}", hint=f"{takes}; add --arg {missing[0]}=.. ({_FORMS})")
    return (*[given[n] for n in names], *in_order[len(names) :])


def _is_random_numbers(text: str) -> bool:
    """Random numbers of no written type, or of an integer's?"""
    made = _MADE.fullmatch(text.strip())
    if made is None or made[1] != "random":
        return False
    _, _, scalar = made[2].partition(",")
    return not scalar or _scalar(scalar).is_integer


def _with_indices(
    program: Program,
    arguments: tuple[Any, ...],
    numbers: Sequence[str],
    sizes: dict[str, int],
    rng: np.random.Generator,
) -> tuple[Any, ...]:
    """The arguments with random indices, below what the other arguments say, for those parameters that take some."""
    import numpy as np

    from lithify.program.check import sample

    declared = dict(zip(program.parameters, program.declared, strict=False))
    places = [k for k, name in enumerate(program.parameters) if name in numbers and _of_indices(declared.get(name))]
    if not places:
        return arguments
    whole = tuple([np.zeros(np.shape(a), np.int32) if k in places else a for k, a in enumerate(arguments)])
    found = program.types(*whole, sizes=sizes)[0]
    return tuple([sample(found[k], rng) if k in places and _of_indices(found[k]) else a for k, a in enumerate(whole)])


def _of_indices(type_: Type | None) -> bool:
    """An index, or an array of them?"""
    from lithify.lang import types

    return type_ is not None and isinstance(types.shape_of(type_)[1], types.Index)


def _split_name(text: str, names: Iterable[str]) -> tuple[str, str]:
    match = _NAME.fullmatch(text)
    if match is None or (match[1] not in names and Path(text).exists()):
        return "", text
    return match[1], match[2]


def _read(text: str, random: np.random.Generator, types: bool) -> Any:
    text = text.strip()
    made = _MADE.fullmatch(text)
    if made is not None:
        return _made(made[1], made[2], random)
    if Path(text).is_file():
        return _file(text, "")
    value, comma, suffix = text.rpartition(",")
    if comma and Path(value).is_file():
        return _file(value, suffix.strip())
    number = _number(value if comma else text)
    if number is not None:
        return number if not comma else _converted_number(number, _scalar(suffix))
    if _looks_like_a_file(value if comma else text):
        raise LithifyError(f"there is no file {value if comma else text}", hint=_nearby(value if comma else text))
    if _TYPE.fullmatch(text):
        return _type(text, types)
    raise LithifyError(f"`{text}` is no argument", hint=_FORMS)


def _type(text: str, types: bool) -> Type:
    from lithify.lang.scalars import SCALARS
    from lithify.program.arguments import read_type

    last = text.rpartition(".")[2]
    if last not in SCALARS:
        hint = choices(last, SCALARS, "the types are") if "." in text else _FORMS
        raise LithifyError(f"`{text}` is no argument", hint=hint)
    found = read_type(text)
    if not types:
        shape = "x".join(text.split(".")[:-1])
        hint = f"make data of it: random:{shape},{last}" if shape else "give a number"
        raise LithifyError(f"`{text}` is a type, a value is needed", hint=hint)
    return found


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _number(text: str) -> bool | int | float | complex | None:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float, complex):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _converted_number(number: bool | int | float | complex, scalar: Scalar) -> Any:
    import numpy as np

    if scalar.is_integer:
        low, high = scalar.limits
        fits = isinstance(number, int) and low <= number <= high
    else:
        fits = scalar.is_complex or not isinstance(number, complex)
    if not fits:
        raise LithifyError(f"{number} is not a value of {scalar}")
    return np.asarray(number).astype(scalar.dtype)[()]


def _scalar(name: str) -> Scalar:
    from lithify.lang.scalars import SCALARS

    name = name.strip()
    if name not in SCALARS:
        raise LithifyError(f"there is no scalar type `{name}`", hint=choices(name, SCALARS, "the types are"))
    return SCALARS[name]


# ---- made data -------------------------------------------------------------------------------------------------------


def _made(kind: str, rest: str, random: np.random.Generator) -> Array:
    import numpy as np

    from lithify.program.check import sample

    shape_text, _, name = rest.partition(",")
    scalar = _scalar(name or "f32")
    shape = tuple([_dimension(part, f"{kind}:{rest}") for part in shape_text.split("x")])
    if math.prod(shape) * scalar.bytes > 1 << 46:
        raise LithifyError(f"{kind}:{rest} has {math.prod(shape)} elements, more than fit into any memory")
    make: dict[str, Callable[[], Array]] = {
        "random": lambda: sample(scalar, random, shape),
        "zeros": lambda: np.zeros(shape, scalar.dtype),
        "ones": lambda: np.ones(shape, scalar.dtype),
        "range": lambda: np.arange(math.prod(shape)).reshape(shape).astype(scalar.dtype),
    }
    return make[kind]()


def _dimension(text: str, of: str) -> int:
    if not text.strip().isdecimal():
        raise LithifyError(f"`{text}` in `{of}` is not a length", hint="write random:1024x512,f32")
    return int(text)


def read_sizes(written: Sequence[str]) -> dict[str, int]:
    """The sizes of `--size blockSize=128`. Raises LithifyError."""
    sizes: dict[str, int] = {}
    for text in written:
        match = _NAME.fullmatch(text)
        if match is None:
            raise LithifyError(f"--size {text} has no name", hint="write --size blockSize=128")
        name, value = match[1], match[2].strip()
        if not value.isdecimal():
            raise LithifyError(f"--size {name}={value}: a size is a whole number, 0 or more")
        if name in sizes:
            raise LithifyError(f"--size {name} is given twice")
        sizes[name] = int(value)
    return sizes


# ---- files -----------------------------------------------------------------------------------------------------------


def _looks_like_a_file(text: str) -> bool:
    return "/" in text or Path(text).suffix.lower() in IMAGES | {".npy", ".npz"}


def _nearby(text: str) -> str | None:
    path = Path(text)
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}"
    names = [p.name for p in path.parent.iterdir() if p.suffix.lower() in IMAGES | {".npy"}]
    return meant(path.name, names)


def _file(name: str, suffix: str) -> Array:
    path = Path(name)
    if path.suffix.lower() == ".npy":
        return _converted(_npy(path), suffix, name)
    if path.suffix.lower() in IMAGES:
        return _image(path, suffix)
    raise LithifyError(f"{name} is neither a .npy file nor an image", hint=f"images end in {', '.join(sorted(IMAGES))}")


def _npy(path: Path) -> Array:
    import numpy as np

    try:
        array: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        raise LithifyError(
            f"{path} cannot be read as a .npy file: {reason}", hint="write it with numpy.save"
        ) from error
    return array.astype(array.dtype.newbyteorder("=")) if not array.dtype.isnative else array


def _converted(array: Array, suffix: str, name: str) -> Array:
    if not suffix:
        return array
    scalar = _scalar(suffix)
    if array.dtype.kind == "c" and not scalar.is_complex:
        raise LithifyError(f"{name} holds complex numbers, which {scalar} cannot")
    return array.astype(scalar.dtype)


def _image(path: Path, suffix: str) -> Array:
    """An image: rows, columns (and for `rgb` the three channels)."""
    import numpy as np

    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise LithifyError(f"{path}: images need Pillow", hint="pip install 'lithify[images]'") from error
    try:
        with Image.open(path) as image:
            wide = image.mode in ("I", "I;16", "F")
            pixels = np.asarray(image if wide and suffix != "rgb" else image.convert("RGB" if suffix == "rgb" else "L"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise LithifyError(f"{path} is not an image that can be read: {error}") from error
    white = 1.0 if pixels.dtype.kind == "f" else 255.0 if pixels.dtype == np.uint8 else 65535.0
    if suffix in ("", "rgb", "grey", "gray"):
        return (pixels / white).astype(np.float32)
    scalar = _scalar(suffix)
    return (pixels / white).astype(scalar.dtype) if scalar.is_float else pixels.astype(scalar.dtype)
