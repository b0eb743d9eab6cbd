"""Queries that a service answers instead of a database, with the same results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from commtune.db.codec import load_plain
from commtune.db.connection.service import ask_service, explain_other_version, quote_part
from commtune.db.records import CampaignSummary, ProfileAnswer, ResultsPage, StoredProfile

_T = TypeVar("_T")


def read_answer(url: str, read: Callable[[], _T]) -> _T:
    """Returns what ``read`` makes of a service's answer.

    Raises:
        DatabaseFault: the answer is not readable, as the service has another version.
    """
    try:
        return read()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        said = str(error).partition("\n")[0]
        raise explain_other_version(url, f"its answer is not readable ({said})") from error


def load_answer(kind: type[_T], plain: Any) -> _T:
    """Returns a dataclass from plain data of the API."""
    return load_plain(kind, _with_open_ends(plain))


def _with_open_ends(plain: Any) -> Any:
    """Restores infinite upper ends of intervals, which are null in JSON."""
    if isinstance(plain, Mapping):
        found = {name: _with_open_ends(one) for name, one in plain.items()}
        return found | {"high": math.inf} if plain.get("high", 0) is None else found
    return [_with_open_ends(one) for one in plain] if isinstance(plain, list) else plain


def list_campaigns(url: str) -> list[CampaignSummary]:
    """Returns the summaries of all campaigns, newest first."""
    told = ask_service(url, "/campaigns")
    return read_answer(url, lambda: [load_answer(CampaignSummary, one) for one in told])


def find_profiles(url: str, campaign: str | None, **least: int | None) -> list[StoredProfile]:
    """Returns the same as ``queries.profiles.find_profiles``."""
    told = ask_service(url, "/profiles", campaign=campaign, **least)
    return read_answer(url, lambda: [load_answer(StoredProfile, one) for one in told])


def load_profile(url: str, reference: str) -> ProfileAnswer:
    """Returns the same as ``queries.profiles.load_profile``, with details."""
    told = ask_service(url, "/profile", name=reference)
    return read_answer(url, lambda: _read_profile(told))


def _read_profile(told: Mapping[str, Any]) -> ProfileAnswer:
    stack = {
        "fingerprint": told["stack_fingerprint"],
        "text": told["stack"],
        "description": told["stack_description"],
    }
    given = {**told, "profile": told, "stack": stack, "level": told["simultaneous_level"]}
    return load_answer(ProfileAnswer, given)


def results_pages(
    url: str, campaign: str, *, newest: int | None = None, limit: int | None = None
) -> Iterator[ResultsPage]:
    """Yields the measurements of a campaign, page by page."""
    after: int | None = 0
    while after is not None:
        path = f"/campaigns/{quote_part(campaign)}/results"
        told = ask_service(url, path, after=after, newest=newest, limit=limit)
        page = read_answer(url, partial(_read_page, told, after))
        yield page
        after = page.next


def _read_page(told: Any, after: int) -> ResultsPage:
    page: ResultsPage = load_plain(ResultsPage, told)
    if page.next is not None and page.next <= after:
        raise ValueError(f"behind run {after} it names {page.next} as the next page")
    return page
