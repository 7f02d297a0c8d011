"""Results on their way out: files, or a short text."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.cli.inputs import IMAGES
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def check_outputs(names: Sequence[str]) -> None:
    """Find what is wrong with the files' names before anything is computed."""
    for name in names:
        path = Path(name)
        if path.suffix.lower() not in IMAGES | {".npy"}:
            raise LithifyError(f"-o {name}: results are written as .npy or as an image (.png, ..)")
        if path.is_dir():
            raise LithifyError(f"-o {name} is a directory")
        if not path.parent.is_dir():
            raise LithifyError(f"-o {name}: there is no directory {path.parent}")


def write_results(results: Sequence[Array], names: Sequence[str]) -> list[str]:
    """Write each result to its file; one name for several results gets numbers. Returns what was written."""
    if len(names) == 1 and len(results) > 1:
        path = Path(names[0])
        names = [str(path.with_name(f"{path.stem}_{k}{path.suffix}")) for k in range(len(results))]
    if len(names) != len(results):
        raise LithifyError(f"the program has {len(results)} result(s), {len(names)} files are given")
    return [_write(result, Path(name)) for result, name in zip(results, names, strict=True)]


def _write(array: Array, path: Path) -> str:
    import numpy as np

    try:
        if path.suffix.lower() == ".npy":
            np.save(path, array)
            return f"{path}: {describe(array)}"
        return _write_image(array, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            if path.is_file():
                path.unlink()  # a part of a result is none
        reason = error.strerror or f"is the disk full? ({error})"
        raise LithifyError(f"{path} cannot be written: {reason}") from error


def _write_image(array: Array, path: Path) -> str:
    """Rows and columns, or those of three channels. Values between 0 and 1 as they are, others stretched to that."""
    try:
        from PIL import Image
    except ImportError as error:
        raise LithifyError(f"{path}: images need Pillow", hint="pip install 'lithify[images]'") from error
    import numpy as np

    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)) or not array.size:
        raise LithifyError(f"{path}: an image has rows and columns (and 3 channels), the result is {describe(array)}")
    if array.dtype.kind == "c":
        raise LithifyError(f"{path}: the result is complex; write it as .npy")
    if array.dtype == np.uint8:
        Image.fromarray(array).save(path)
        return f"{path}: {describe(array)}"
    values = np.nan_to_num(array.astype(np.float64), posinf=1.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    stretched = low < 0 or high > 1
    if stretched:
        values = (values - low) / ((high - low) or 1.0)
    Image.fromarray(np.round(values * 255).astype(np.uint8)).save(path)
    return f"{path}: {describe(array)}" + (
        f", {low:.4g} .. {high:.4g} stretched to black .. white" if stretched else ""
    )


def describe(array: Array) -> str:
    """Its type in the notation of the language."""
    from lithify.targets.foreign import describe as described

    return described(array)


def text_of(array: Array) -> str:
    """A result as text: small ones whole, large ones shortened."""
    import numpy as np

    array = np.asarray(array)
    if array.dtype.isbuiltin != 1:  # ml_dtypes print through float
        array = array.astype(np.float32)
    return np.array2string(array, threshold=200, edgeitems=4, max_line_width=100) if array.ndim else str(array[()])
