"""lithify: tensor computations written once as functional programs, and fast kernels derived from them."""

from lithify.version import __version__

__all__ = ["__version__"]
