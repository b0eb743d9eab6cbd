"""What other sites found best, as configurations that a campaign here tries first."""

from __future__ import annotations

from dataclasses import replace

from commtune.campaign.loading import CampaignSpec
from commtune.db.queries.sites import best_of_sites
from commtune.errors import NoAnswer

#: Each costs a run of the search, whatever is left of its budget.
_MOST = 3


def propose_from_sites(spec: CampaignSpec, url: str) -> CampaignSpec:
    """The campaign with the best of other sites among what it tries first.

    Only what its space holds, and what was merged before the campaign began: going on with it asks
    the same.

    Raises:
        DatabaseFault: the database can't be read.
    """
    plan = spec.plan
    try:
        found = best_of_sites(url, plan.name, plan.workload)
    except NoAnswer:  # no database yet
        return spec
    known = [*plan.first]
    remarks = []
    for profile in found:
        configuration = profile.configuration
        if configuration in known or plan.space.check(configuration):
            continue  # where it comes from is not trusted: this space has every value of it
        known.append(configuration)
        remarks.append(
            f"note: tried first, as {profile.site} found it best ({profile.campaign}): "
            f"{configuration}"
        )
        if len(remarks) == _MOST:
            break
    return replace(spec, plan=replace(plan, first=tuple(known))).with_remarks(remarks)
