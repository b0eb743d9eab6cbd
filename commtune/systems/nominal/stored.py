"""Nominal bandwidth of what is stored: worked out again from stored links, never stored itself.

A campaign keeps the links and ports of its system's description (`FABRIC` in its settings), a run
the links that its GPUs' driver named (`rank_info` in its header). So a model that was mended
judges old measurements as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.systems.nominal.bounds import Nominal, no_nominal
from commtune.systems.nominal.driver_links import fabric_of_ranks
from commtune.systems.nominal.fabric import Fabric
from commtune.systems.nominal.operations import nominal_bandwidth
from commtune.systems.nominal.traffic import Memory, NominalQuestion

_STAGED = "mpi-staged"
#: What the plain form of a shape leaves out.
_DEFAULTS = {"group_size": 1, "active": 1, "direction": "outbound"}

#: Key of a campaign's settings that holds a fabric as plain data.
FABRIC = "fabric"


def stored_fabric(
    settings: Mapping[str, Any], header: Mapping[str, Any] | None = None
) -> Fabric | None:
    """The links and ports of a campaign's system: as described, else as the driver named them."""
    if described := settings.get(FABRIC):
        return Fabric.of_plain(described)
    ranks = (header or {}).get("rank_info")
    return fabric_of_ranks(ranks) if ranks else None


def stored_nominal(
    workload: Mapping[str, Any], fabric: Fabric | None, header: Mapping[str, Any] | None = None
) -> Nominal:
    """The nominal bandwidth of a workload as it is stored, or why there is none.

    Args:
        workload: operation, ranks, nodes, backend, shape, as plain data; ``flows`` beside them
            are the messages of a matrix.
        header: of a run of it.
    """
    if fabric is None:
        return no_nominal("neither a system description nor links that a driver names")
    if workload.get("emulated_nodes"):
        return no_nominal("its nodes are emulated on one machine, over sockets")
    question = stored_question(workload, header)
    if question.operation == "matrix" and not question.flows:
        return no_nominal("the messages of its matrix are not stored: there are too many")
    shape = workload.get("shape") or {}
    if (
        _STAGED in [shape.get(key) for key in ("inside", "between", "assemble")]
        and question.memory is Memory.DEVICE
    ):
        return no_nominal("there is no model of messages of which some go through the host")
    return nominal_bandwidth(fabric, question)


def stored_question(
    workload: Mapping[str, Any], header: Mapping[str, Any] | None = None
) -> NominalQuestion:
    """What a nominal bandwidth is asked for, of a workload as it is stored.

    Args:
        workload: as for ``stored_nominal``.
        header: of a run of it; knows what the benchmark chose itself.
    """
    shape = {**_DEFAULTS, **((header or {}).get("shape") or {}), **(workload.get("shape") or {})}
    return NominalQuestion(
        operation=str(workload["operation"]),
        ranks=int(workload["ranks"]),
        nodes=int(workload.get("nodes", 1)),
        memory=Memory.of_backend(str(workload.get("backend", "mpi-host"))),
        group_size=int(shape["group_size"]),
        active=int(shape["active"]),
        direction=str(shape["direction"]),
        flows=tuple((int(a), int(b), float(amount)) for a, b, amount in workload.get("flows", ())),
        window=int(workload.get("window") or shape.get("window") or 0),
    )
