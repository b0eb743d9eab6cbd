"""What MPICH's launcher says of runs that failed in a job of PBS's, and who is to blame."""

from __future__ import annotations

from commtune.cluster.exit_codes import judge_run
from commtune.cluster.pbs.client import MpiLauncher
from commtune.model import Outcome
from commtune.process import Completed
from commtune.tuner.ports import Records

#: MPICH 5.0.2: the connection to a node's helper is gone, because the node died, or because
#: SIGTERM ended them all.
CLOSED = """\
[proxy:0@n1] HYD_pmcd_pmip_control_cmd_cb (pm/hydra/proxy/pmip_cb.c:490): assert (!closed) failed
"""


def _judged(exit_code: int, *, timed_out: bool) -> Outcome:
    completed = Completed(exit_code, None, timed_out, 5.0, CLOSED)
    return judge_run(Records(), completed, 5.0, MpiLauncher().judge_failure)[0]


def test_a_helper_that_is_gone_is_a_lost_node() -> None:
    assert _judged(1, timed_out=False) is Outcome.NODE_FAILURE


def test_a_launcher_that_was_ended_for_its_time_has_lost_no_node() -> None:
    assert _judged(124, timed_out=True) is Outcome.TIMED_OUT
