"""Finds the best configurations of earlier campaigns, which a new one tries first."""

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

#: The most such configurations: each costs a run of the search.
_MOST = 3
#: The largest share of the search's runs for them, as they may be wrong here.
_SHARE = 0.1
_NOTHING = (
    "note: nothing of the campaigns to learn from is tried first: they have no proven profile "
    "that this space holds, or the search has too few runs"
)


def find_proposals(spec: CampaignSpec, url: str) -> Callable[[CampaignSpec], CampaignSpec]:
    """Returns a function that adds the best of earlier campaigns to a campaign's first trials.

    It is to be applied to the campaign after its space was fitted, as only configurations in the
    space are tried, in a number that depends on the budget. A resumed campaign keeps those that it
    began with, because new ones would restart its search.

    Raises:
        CampaignError: there is no campaign of a name in ``learn_from``.
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
    """Returns the campaign with the most promising configurations of these profiles."""
    plan = spec.plan
    learned: dict[Configuration, str] = {}
    for profile in found:
        # The source of a profile is not trusted, so its values must all be in this space.
        if profile.configuration not in plan.first and not plan.space.check(profile.configuration):
            learned.setdefault(profile.configuration, profile.campaign)
    learned = dict(list(learned.items())[: _count(spec, url, found)])
    if not learned and spec.learn_from != (AUTO,):
        spec = spec.with_remarks([_NOTHING])
    return _try_first(spec, learned)


def _count(spec: CampaignSpec, url: str, found: Sequence[StoredProfile]) -> int:
    """Returns the number of configurations to try: a small share of the search's runs."""
    budget, limits = spec.plan.budget, [float(_MOST)]
    if budget.trials is not None:
        limits.append(_SHARE * budget.trials)
    alike = [one for one in found if one.is_about(spec.plan.workload) and not one.site]
    if alike and (run_s := mean_run_s(url, alike[0].campaign)):
        limits.append(_SHARE * budget.search_s / run_s)
    return int(min(limits))
