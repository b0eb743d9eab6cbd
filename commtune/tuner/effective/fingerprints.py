"""What shows the algorithm of a size: ``Execution.fingerprints``, compared."""

from __future__ import annotations


def split_fingerprint(fingerprint: str) -> tuple[str, str]:
    """The digests of the sum and of the messages; either may be empty."""
    order, _, messages = fingerprint.partition("+")
    return order, messages


def is_same_algorithm(one: str, other: str) -> bool | None:
    """Whether the digests that both have are equal; ``None`` where they have none in common."""
    pairs = zip(split_fingerprint(one), split_fingerprint(other), strict=True)
    common = [own == its for own, its in pairs if own and its]
    return all(common) if common else None
