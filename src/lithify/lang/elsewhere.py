"""How other notations write things, and what is written here: for errors in texts that say what to write."""

from __future__ import annotations

_NO_FILTER = "results whose size depends on values do not exist here: compute all, and choose with `if`"
_FUNCTION = "a function is λ x . body, or \\x -> body"
_ITERATED = "there are no loops: map, reduce, scan and iterate are written instead"

# By name: an expression of the language in which xs, ys, f, n stand for what was meant.
EXPRESSIONS = {
    "fold": "reduce f 0 xs",
    "foldl": "reduce f 0 xs",
    "foldr": "reduce f 0 xs",
    "scanl": "scan f 0 xs",
    "cumsum": "scan (+) 0 xs",
    "prod": "reduce (*) 1 xs",
    "maximum": "reduce max (-inf) xs",
    "minimum": "reduce min inf xs",
    "mean": "sum xs / length xs",
    "len": "length xs",
    "size": "length xs",
    "flatten": "join xs",
    "append": "concat xs ys",
    "concatenate": "concat xs ys",
    "zipWith": "map f (zip xs ys)",
    "window": "slide 3 1 xs",
    "windows": "slide 3 1 xs",
    "chunk": "split n xs",
    "chunks": "split n xs",
    "reshape": "split n xs",
    "head": "xs[0]",
    "tail": "drop 1 xs",
    "last": "xs[length xs - 1]",
    "iota": "generate n (λ i . i)",
    "arange": "generate n (λ i . i)",
    "repeat": "replicate n 0",
    "zeros": "replicate n 0",
    "ones": "replicate n 1",
    "matmul": "map (λ row . map (λ column . dot row column) (transpose ys)) xs",
}
# By name, or by the characters: what to do.
_REMARKS = {
    "filter": _NO_FILTER,
    "nonzero": _NO_FILTER,
    "where": "names are given in front: let y = .. in ..; of two values one is chosen by if c then a else b",
    "lambda": _FUNCTION,
    "fun": _FUNCTION,
    "fn": _FUNCTION,
    "for": _ITERATED,
    "while": _ITERATED,
    "return": "the value of a definition is what stands behind its `=`",
    "def": "a definition is name x y = body",
    "=>": _FUNCTION,
    "**": "a power is x ^ 2",
    "//": "a comment begins with --; integers are divided by /",
    "#": "a comment begins with --",
    "&": "of two conditions && is the and; of integers it is `and x y`",
    "|": "of two conditions || is the or; of integers it is `or x y`; xs |> f applies f",
    "!": "the opposite is `not x`",
    ";": "each definition starts on a line of its own",
    "{": "definitions and functions have no braces; parts are put together with ( )",
    "}": "definitions and functions have no braces; parts are put together with ( )",
}
SYMBOLS = ("=>", "**", "//")  # whose characters have a meaning here, each by itself


def written_here(there: str) -> str | None:
    """What to write instead of a name, or of characters, that this language has not; None where nothing is known."""
    expression = EXPRESSIONS.get(there)
    return f"write {expression}" if expression is not None else _REMARKS.get(there)
