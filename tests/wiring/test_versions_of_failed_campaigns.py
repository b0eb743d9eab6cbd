"""Versions below MPI of campaigns in which nothing worked so far."""

from __future__ import annotations

from dataclasses import replace

import database_values as values

from commtune.db.storage.store import Store
from commtune.model import DEFAULT, Outcome
from commtune.wiring import library_versions


def test_what_a_failing_default_could_not_tell_is_asked_again(store: Store, url: str) -> None:

    for name, cut in (("unknown", {}), ("known", {"ucx": "1.20.1"})):
        record = values.campaign()
        space = {**record.space, "cut_to": cut}
        campaign_id = store.open_campaign(replace(record, name=name, space=space)).id
        store.add_trial(campaign_id, 0, DEFAULT, "baseline")
        for number, outcome in enumerate((Outcome.FAILED, Outcome.OK)):
            run_id = f"{name}-{number}"
            request = values.request(run_id, configuration=DEFAULT, trial=0)
            store.start_runs(campaign_id, [request], f"s{number}")
            before = library_versions.begun_with(url, name)
            assert before == (cut or None)  # the campaign may begin anew: so nothing binds it
            store.finish_run(campaign_id, values.result(run_id, outcome=outcome), "allreduce")
        assert library_versions.begun_with(url, name) == cut
