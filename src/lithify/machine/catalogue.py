"""The devices that were looked at closely, and how a device is found among them by what it says of itself."""

from __future__ import annotations

from dataclasses import replace

from lithify.machine.model import DeviceModel
from lithify.machine.nvidia import H200_CUDA, H200_OPENCL
from lithify.machine.opencl import GENERIC_CPU, GENERIC_GPU, OpenCLFacts, opencl_model

_KNOWN = (H200_OPENCL, H200_CUDA)


def known_models() -> tuple[DeviceModel, ...]:
    """All models that do not depend on the machine at hand: the known devices and the generic ones."""
    return (*_KNOWN, GENERIC_CPU, GENERIC_GPU)


def model_of(facts: OpenCLFacts) -> DeviceModel:
    """The model of an OpenCL device: the known one of that name, else a generic one with the device's own figures.

    A known device keeps what is known of it, but never offers more than the device in hand says that it has.
    """
    for model in _KNOWN:
        if model.api == "opencl" and model.name in facts.name:
            local = model.memory("local")
            fitted = replace(local, bytes=min(local.bytes or facts.local_bytes, facts.local_bytes))
            memories = tuple(fitted if spec is local else spec for spec in model.memories)
            return replace(model, name=facts.name, cores=facts.compute_units, memories=memories)
    return opencl_model(facts)
