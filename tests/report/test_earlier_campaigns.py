"""What a result says of the configurations that earlier campaigns proposed."""

from __future__ import annotations

import database_values as given

from commtune.model import Configuration, Verdict
from commtune.report.earlier_campaigns import describe_learned

WHOLE = Configuration({"A": "1", "B": "2"})
PART = Configuration({"A": "1"})
OTHER = Configuration({"A": "2"})
START = "Tried first, from earlier campaigns: "


def test_profiles_that_are_made_of_what_an_earlier_campaign_found() -> None:
    profiles = [
        given.profile("small", configuration=PART),
        given.profile("middle", configuration=OTHER),
        given.profile("large", configuration=WHOLE),
    ]
    assert describe_learned({WHOLE: "night"}, profiles) == (
        f"{START}small is a part of what night found best, large is what night found best."
    )


def test_none_of_it_is_recommended() -> None:
    profiles = [
        given.profile("small", configuration=OTHER),
        given.profile("large", configuration=Configuration(), verdict=Verdict.DEFAULT),
        given.profile("likely", configuration=WHOLE, verdict=Verdict.LIKELY),
    ]
    said = describe_learned({WHOLE: "night", PART: "day"}, profiles)
    assert said == f"{START}2 configurations, of which none is recommended."


def test_nothing_is_said_where_nothing_was_tried() -> None:
    assert describe_learned({}, [given.profile(configuration=WHOLE)]) == ""
