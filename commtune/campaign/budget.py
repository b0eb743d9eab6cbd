"""The budget in a campaign file: times, node-hours, and how the ones follow from the others."""

from __future__ import annotations

from typing import Annotated

from commtune.campaign.plan import Budget
from commtune.campaign.values import Amount, Part, Seconds, require_within
from commtune.documents.quantities import format_seconds
from commtune.documents.yaml_document import Document
from commtune.spaces.schema import Whole

#: The phases, and how they share what nobody divided otherwise.
_SHARES = {"search": 0.5, "ablation": 0.2, "confirmation": 0.3}


class BudgetPart(Part):
    """How much may be spent; every limit given holds."""

    search: Seconds = 50.0
    ablation: Seconds = 20.0
    confirmation: Seconds = 30.0
    trials: Annotated[Whole, require_within(1, 2**31 - 1, "1 or more")] | None = None
    node_hours: Amount | None = None


def budget_of(document: Document, part: BudgetPart, nodes: int) -> Budget:
    """What may be spent; times that nobody gave follow from node-hours where there are some.

    Args:
        nodes: how many the campaign's runs take.

    Raises:
        DocumentError: the times together take more node-hours than there are.
    """
    given = {name: getattr(part, name) for name in _SHARES if name in part.model_fields_set}
    times = {name: getattr(part, name) for name in _SHARES}
    if part.node_hours is not None:
        whole_s = part.node_hours * 3600 / nodes
        left_s = whole_s - sum(given.values())
        open_shares = {name: share for name, share in _SHARES.items() if name not in given}
        if left_s < -1e-6 * whole_s or (open_shares and left_s <= 0):
            raise _too_much(document, part.node_hours, nodes, sum(given.values()), whole_s)
        whole_share = sum(open_shares.values())
        times |= {name: left_s * share / whole_share for name, share in open_shares.items()}
    return Budget(
        times["search"], times["ablation"], times["confirmation"], part.trials, part.node_hours
    )


def _too_much(
    document: Document, node_hours: float, nodes: int, asked_s: float, whole_s: float
) -> Exception:
    needed = asked_s * nodes / 3600
    return document.error(
        f"{format_seconds(asked_s)} on {nodes} node{'s' if nodes > 1 else ''} are {needed:.4g} "
        f"node-hours, and there are {node_hours:g}",
        ("budget", "node_hours"),
        hint=f"raise node_hours above {needed:.4g}, or leave the times out: they then share "
        f"{format_seconds(whole_s)}",
    )
