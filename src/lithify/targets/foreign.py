"""Arrays of other libraries as NumPy arrays: where they lie if that is the memory of the CPU, through DLPack."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lithify.lang.errors import LaunchError
from lithify.lang.given import kind_of
from lithify.lang.scalars import bf16, f8e4m3, f8e5m2, scalar_of_dtype
from lithify.targets.memory import Array

_DLPACK_CPU = (1, 3)  # kDLCPU, kDLCUDAHost
_DEVICES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda (managed)"}
# what torch calls the types that DLPack cannot hand to NumPy, and the integer type to view them as
_TORCH_BITS = {"torch.bfloat16": ("int16", bf16), "torch.float8_e4m3fn": ("uint8", f8e4m3),
               "torch.float8_e5m2": ("uint8", f8e5m2)}  # fmt: skip


def numpy_array(value: Any, name: str) -> Array:
    """An array of another library, or a number, as a NumPy array that shares its memory where possible."""
    if isinstance(value, np.ma.MaskedArray):
        raise LaunchError(f"{name} is a masked array; its mask would be lost", hint="use .filled(..)")
    if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise LaunchError(
            f"{name} is {kind_of(value)}, neither an array (NumPy or DLPack) nor a number",
            hint="make it an array: np.asarray(.., dtype)",
        )
    try:
        device = value.__dlpack_device__()
        if int(device[0]) in _DLPACK_CPU:
            return _through_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{name} cannot be read through DLPack: {error}") from error
    where = _DEVICES.get(int(device[0]), f"device kind {int(device[0])}")
    hint = "copy it there: .cpu() of torch, np.asarray(..) of most others"
    raise LaunchError(f"{name} lies on {where}:{device[1]}, not in the memory of the CPU", hint=hint)


def _through_dlpack(value: Any) -> Array:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach()
        bits = _TORCH_BITS.get(str(value.dtype))
        if bits is not None:
            array: Array = value.view(getattr(torch, bits[0])).numpy().view(bits[1].dtype)
            return array
        array = value.resolve_conj().resolve_neg().numpy()
        return array
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        if not hasattr(value, "__array__"):
            raise
        return np.asarray(value)  # bfloat16 of libraries that know ml_dtypes


def describe(value: Any) -> str:
    """Type and shape of an array, in the notation of the language."""
    try:
        element = str(scalar_of_dtype(value.dtype))
    except KeyError:
        element = str(value.dtype)
    return ".".join([*map(str, value.shape), element])


def repeats(array: Array) -> bool:
    """Whether two elements may share memory: each stride must reach past all that smaller strides cover."""
    reach = array.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach = stride * extent
    return False
