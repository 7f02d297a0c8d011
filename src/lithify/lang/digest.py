"""A stable fingerprint of a term: equal in every process for alpha-equivalent terms, for the keys of caches."""

from __future__ import annotations

import hashlib

from lithify.lang.index_functions import IndexFunction
from lithify.lang.operators import Operator
from lithify.lang.term import Term


def digest(term: Term) -> str:
    """A hexadecimal SHA-256 of the term's structure, attributes and leaf types (map names included)."""
    memo: dict[int, bytes] = {}

    def go(t: Term) -> bytes:
        found = memo.get(t.id)
        if found is None:
            state = hashlib.sha256(t.kind.encode())
            for attribute in t.attrs:
                state.update(b"\0" + _attribute(attribute))
            for child in t.args:
                state.update(b"\1" + go(child))
            memo[t.id] = found = state.digest()
        return found

    return go(term).hex()


def _attribute(value: object) -> bytes:
    if isinstance(value, IndexFunction):
        parts = (value.extent, value.source, value.forward, value.inverse)
        return b"reindex " + "|".join(map(str, parts)).encode()
    if isinstance(value, Operator):
        if value.definition is None:
            return f"{value.name} ".encode()
        laws = (value.associative, value.commutative, value.idempotent)
        terms = (value.definition, value.neutral_term, value.absorbing_term, value.inverse_term)
        declared = " ".join("-" if part is None else digest(part) for part in terms)
        return f"{value.name} {laws} {declared}".encode()
    return str(value).encode()
