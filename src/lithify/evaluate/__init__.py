"""The reference evaluator: what every term of the language means, on NumPy arrays.

Both levels 1 and 2 are executed here: levels and memories say how a value is computed, not what it is.
"""

from lithify.evaluate.evaluator import evaluate
from lithify.evaluate.numerics import EXACT, STORED, Numerics
from lithify.evaluate.sizes import bind_sizes

__all__ = ["EXACT", "STORED", "Numerics", "bind_sizes", "evaluate"]
