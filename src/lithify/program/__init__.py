"""Program objects: call them, move them to a device, ask what they became and how fast they are."""

from lithify.program.devices import Device, DeviceStatus, device, devices
from lithify.program.module import Module, load, parse
from lithify.program.program import Program, program

__all__ = ["Device", "DeviceStatus", "Module", "Program", "device", "devices", "load", "parse", "program"]
