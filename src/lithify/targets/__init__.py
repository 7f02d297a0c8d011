"""Targets: what turns kernel programs into text and runs them. One folder a target (`cpu`, `opencl`, `c`)."""
