"""Tells a misspelled name from another variable: NCCL_BUFF_SIZE, but not UCX_IB_RX_QUEUE_LEN."""

from __future__ import annotations

_LEAST = 4  # letters: RX and TX, MIN and MAX, D2H and H2D are words of their own


def is_misspelling(name: str, known: str) -> bool:
    """Whether a name is most likely a known one, misspelled.

    Either the two differ in underscores and capitals only, or in one word of at least four
    letters: by one letter, by two letters that changed places, or by an end of three or more
    letters (THRESHOLD).
    """
    if name == known:
        return False
    if _letters(name) == _letters(known):
        return True
    ours, theirs = name.upper().split("_"), known.upper().split("_")
    if len(ours) != len(theirs):
        return False
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    return len(pairs) == 1 and _alike(*pairs[0])


def _letters(name: str) -> str:
    return name.replace("_", "").upper()


def _alike(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    if len(short) < _LEAST or short.isdigit():
        return False
    if long.startswith(short) and (long[len(short) :] == "V" or len(long) == len(short) + 2):
        return False  # ALLTOALL and ALLTOALLV, MSCCL and MSCCLPP
    return (long.startswith(short) and len(long) > len(short) + 2) or _one_slip(a, b)


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter more, less or other, or two that changed places, make b of a.

    The first letter is never the slip: ALLREDUCE and IALLREDUCE, BCOPY and ZCOPY are two things.
    """
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest_a, rest_b = a[start:], b[start:]
    swapped = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    if start == 0:
        return swapped
    return rest_a[1:] in (rest_b[1:], rest_b) or rest_a == rest_b[1:] or swapped


def is_misspelled_word(word: str, known: str) -> bool:
    """Whether a word of a value is most likely a known one, misspelled by one letter.

    Words with digits never are: LL and LL128, sm80 and sm90 are two things.
    """
    ours, theirs = word.upper(), known.upper()
    if not f"{ours}{theirs}".replace("_", "").isalpha() or min(len(ours), len(theirs)) < _LEAST:
        return False
    if abs(len(ours) - len(theirs)) > 1 or f"{ours}V" == theirs or f"{theirs}V" == ours:
        return False
    return ours != theirs and _one_slip(ours, theirs)
