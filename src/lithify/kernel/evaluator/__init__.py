"""The kernel evaluator: runs kernels on NumPy arrays and reports whatever a device would leave undefined.

All work-items of many work-groups run together, one statement at a time; what makes a parallel program wrong is not
left to the order in which they happen to run, but recorded and compared (see `races`). Slow and exact: for small sizes.
"""

from lithify.kernel.evaluator.counts import Counts
from lithify.kernel.evaluator.program import run
from lithify.kernel.evaluator.width import check_index_width, index_bits

__all__ = ["Counts", "check_index_width", "index_bits", "run"]
