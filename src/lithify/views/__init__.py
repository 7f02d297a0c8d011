"""Views: stacks of coordinate transforms between named dims, and what is computed from them."""

from lithify.views.builders import BottomUp, TopDown, bottom_up, top_down
from lithify.views.concrete import everywhere, read, write
from lithify.views.elaborate import as_term
from lithify.views.errors import ViewError
from lithify.views.layouts import layout_of, view_of
from lithify.views.locality import Locality, locality
from lithify.views.space import Dim, dims
from lithify.views.transforms import (
    AddDim,
    Broadcast,
    ConstDim,
    Embed,
    Merge,
    Pad,
    PassThrough,
    Reindex,
    Slice,
    Transform,
    Unmerge,
    Xor,
)
from lithify.views.view import Access, Guard, TransformMap, View
from lithify.views.width import VectorWidth, VectorWidths, index_bits, vector_widths

__all__ = [
    "Access",
    "AddDim",
    "BottomUp",
    "Broadcast",
    "ConstDim",
    "Dim",
    "Embed",
    "Guard",
    "Locality",
    "Merge",
    "Pad",
    "PassThrough",
    "Reindex",
    "Slice",
    "TopDown",
    "Transform",
    "TransformMap",
    "Unmerge",
    "VectorWidth",
    "VectorWidths",
    "View",
    "ViewError",
    "Xor",
    "as_term",
    "bottom_up",
    "dims",
    "everywhere",
    "index_bits",
    "layout_of",
    "locality",
    "read",
    "top_down",
    "vector_widths",
    "view_of",
    "write",
]
