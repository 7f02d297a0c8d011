"""The error that views raise."""


class ViewError(ValueError):
    """A transform, map or stack is ill-formed, or a question about it has no answer; the message names the dims."""
