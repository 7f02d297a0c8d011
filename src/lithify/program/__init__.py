"""Program objects: call them, move them to a device, ask what they became and how fast they are.

`lithify.program` is this package and also the decorator `@lithify.program`: the package can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lithify.program.devices import Device, DeviceStatus, device, devices
from lithify.program.module import Module, library, load, parse
from lithify.program.program import Program, program

__all__ = ["Device", "DeviceStatus", "Module", "Program", "device", "devices", "library", "load", "parse", "program"]


class _Package(ModuleType):
    def __call__(self, function: Callable[..., Any]) -> Program:
        return program(function)


sys.modules[__name__].__class__ = _Package
