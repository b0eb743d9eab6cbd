"""What earlier campaigns found best, as configurations that a new one tries first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from commtune.campaign.loading import CampaignSpec
from commtune.campaign.value_types import AUTO
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.proven import mean_run_s, proven_profiles
from commtune.db.records import StoredProfile
from commtune.db.settings import learned_configurations
from commtune.errors import NoAnswer, UnknownName
from commtune.model import Configuration

#: Each costs a run of the search, whatever is left of its budget.
_MOST = 3
#: What they may cost where they are wrong, of the search's runs.
_SHARE = 0.1
_NOTHING = (
    "note: nothing of the campaigns to learn from is tried first: they have no proven profile "
    "that this space holds, or the search has too few runs"
)


def find_proposals(spec: CampaignSpec, url: str) -> Callable[[CampaignSpec], CampaignSpec]:
    """What puts the best of earlier campaigns, here and elsewhere, among what one tries first.

    It is for the campaign as it will run: only what its space holds is tried, and how many follows
    from its budget. A campaign that goes on has those that it began with, since what is new would
    make it search again.

    Raises:
        CampaignError: there is no campaign of a name that it is to learn from.
        DatabaseFault: the database can't be read.
    """
    if not spec.learn_from:
        return lambda fitted: fitted
    try:
        stored = describe_campaign(url, spec.plan.name)
    except (NoAnswer, UnknownName):
        return partial(_try_best, found=_find(spec, url), url=url)
    return partial(_try_first, learned=learned_configurations(stored.settings))


def _try_first(spec: CampaignSpec, learned: Mapping[Configuration, str]) -> CampaignSpec:
    first = dict.fromkeys([*spec.plan.first, *learned])
    remarks = [
        f"note: tried first, as {campaign} found it best: {configuration}"
        for configuration, campaign in learned.items()
    ]
    spec = replace(spec.with_plan(first=tuple(first)), learned=learned)
    return spec.with_remarks(remarks)


def _find(spec: CampaignSpec, url: str) -> Sequence[StoredProfile]:
    names = None if spec.learn_from == (AUTO,) else spec.learn_from
    try:
        return proven_profiles(url, spec.plan.workload, names)
    except (NoAnswer, UnknownName) as error:
        if names is None:  # there is no database yet
            return ()
        raise spec.error_at("learn_from", error.message, error.hint) from error


def _try_best(spec: CampaignSpec, found: Sequence[StoredProfile], url: str) -> CampaignSpec:
    """The campaign with the most promising of these, each once."""
    plan = spec.plan
    learned: dict[Configuration, str] = {}
    for profile in found:
        # Where it comes from is not trusted: this space has every value of it.
        if profile.configuration not in plan.first and not plan.space.check(profile.configuration):
            learned.setdefault(profile.configuration, profile.campaign)
    learned = dict(list(learned.items())[: _count(spec, url, found)])
    if not learned and spec.learn_from != (AUTO,):
        spec = spec.with_remarks([_NOTHING])
    return _try_first(spec, learned)


def _count(spec: CampaignSpec, url: str, found: Sequence[StoredProfile]) -> int:
    """How many are tried: few of the search's runs, as far as it is known how many these are."""
    budget, limits = spec.plan.budget, [float(_MOST)]
    if budget.trials is not None:
        limits.append(_SHARE * budget.trials)
    alike = [one for one in found if one.is_about(spec.plan.workload) and not one.site]
    if alike and (run_s := mean_run_s(url, alike[0].campaign)):
        limits.append(_SHARE * budget.search_s / run_s)
    return int(min(limits))
