"""OpenCL: kernels as OpenCL C 1.2, compiled and run through pyopencl on any platform."""

from lithify.targets.opencl.compiler import BuildError
from lithify.targets.opencl.devices import OpenCLDevice, devices, select
from lithify.targets.opencl.executable import DeviceArray, OpenCLExecutable
from lithify.targets.opencl.target import OpenCLTarget

__all__ = ["BuildError", "DeviceArray", "OpenCLDevice", "OpenCLExecutable", "OpenCLTarget", "devices", "select"]
