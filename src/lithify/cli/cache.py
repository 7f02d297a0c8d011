"""`lithify cache`."""

from __future__ import annotations


def show_cache() -> None:
    """Where the cache is and how much it holds."""
    from lithify.targets.cache import CACHE

    found = CACHE.stats()
    print(f"{found.directory}: {found.entries} entries, {found.bytes / 2**20:.1f} MiB")


def clear_cache() -> None:
    """Remove all entries."""
    from lithify.targets.cache import CACHE

    print(f"{CACHE.directory}: {CACHE.clear()} entries removed")
