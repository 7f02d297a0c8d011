"""The error that arithmetic on sizes and indices raises."""


class ArithError(ValueError):
    """An operation on sizes or indices is not defined, or cannot be shown to be; the message has both formulas."""
