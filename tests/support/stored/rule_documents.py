"""Profiles of ranges of sizes, as documents that files of rules are written from."""

from __future__ import annotations

from dataclasses import replace

from export_documents import DOCUMENT, PROFILE, point

from commtune.export.document import ExportDocument
from commtune.model import Configuration

KIB = 1024
OMPI = "OMPI_MCA_coll_tuned_"
DYNAMIC = {f"{OMPI}use_dynamic_rules": "1"}
RING_LL = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}
TREE_SIMPLE = {"NCCL_ALGO": "tree", "NCCL_PROTO": "SIMPLE"}
RING_LL128 = {"NCCL_ALGO": "RING", "NCCL_PROTO": "LL128"}


def document(
    low: int, high: int, settings: dict[str, str], operation: str, ranks: int = 4, nodes: int = 1
) -> ExportDocument:
    profile = replace(
        PROFILE,
        name=f"{operation}-{low}",
        operation=operation,
        ranks=ranks,
        nodes=nodes,
        bytes_low=low,
        bytes_high=high,
        configuration=Configuration(settings),
        points=tuple(point(operation, size, (1.3, 1.2, 1.4)) for size in sorted({low, high})),
    )
    return replace(DOCUMENT, profile=profile, pinned={})


def nccl_document(
    low: int, high: int, settings: dict[str, str], operation: str = "allreduce"
) -> ExportDocument:
    """Of 16 ranks on two nodes."""
    made = document(low, high, settings, operation, ranks=16, nodes=2)
    return replace(made, profile=replace(made.profile, backend="xccl"), pinned=DOCUMENT.pinned)


def nccl_documents() -> tuple[ExportDocument, ...]:
    return (
        nccl_document(8, KIB, RING_LL),
        nccl_document(4 * KIB, 64 * KIB, TREE_SIMPLE),
        nccl_document(2**34, 2**35, RING_LL128),
        nccl_document(8, 8, RING_LL, "reduce-scatter"),
    )


def tuned(collective: str, **settings: str) -> dict[str, str]:
    """Open MPI's variables of a collective under ``coll/tuned``."""
    named = {f"{OMPI}{collective}_{name}": value for name, value in settings.items()}
    return {**DYNAMIC, **named}


def openmpi_documents(first: str) -> tuple[ExportDocument, ...]:
    """Two ranges of allreduce, one of broadcast; ``first`` is the algorithm of the smallest."""
    large = tuned("allreduce", algorithm="segmented_ring", algorithm_segmentsize="64k")
    return (
        document(8, KIB, tuned("allreduce", algorithm=first), "allreduce"),
        document(4 * KIB, 16 * KIB, large, "allreduce"),
        document(8, KIB, tuned("bcast", algorithm="chain"), "broadcast"),
    )
