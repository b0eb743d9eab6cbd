"""A controller that is killed, interrupted, doubled or asked something else than before."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import SMALL, CommandLine, Said, has_footer, wait_until
from step_program import ONE_RANK, write_one_rank
from waiting import PATIENCE_S


@pytest.fixture(params=["sqlite", "postgresql"])
def on_each(request: pytest.FixtureRequest, tmp_path: Path) -> CommandLine:
    """A campaign of runs that take six seconds over each kind of database."""
    commtune = CommandLine(tmp_path)
    write_one_rank(commtune, run_s=6)
    if request.param == "postgresql":
        commtune.extra["COMMTUNE_DB"] = request.getfixturevalue("new_postgresql_url")
    return commtune


def test_a_run_that_still_lives_is_ended_and_made_again(on_each: CommandLine) -> None:
    commtune = on_each
    with commtune.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(commtune.records()) >= 1, child)
        child.send_signal(signal.SIGKILL)
        child.communicate()
    commtune.stop_left_over()
    (left,) = set(commtune.left_over().values())

    assert commtune.resume_briefly().code == 130
    settled = commtune.query("SELECT run_id, outcome, detail FROM runs ORDER BY id")
    assert settled[0] == (left, "interrupted", "its controller died")
    assert [row[1:] for row in settled[1:]] == [("interrupted", "ended from outside")]
    assert commtune.left_over() == {}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, Said]:
    """A campaign that is done, and what was said."""
    line = CommandLine(tmp_path_factory.mktemp("finished"))
    write_one_rank(line)
    return line, line.succeed("tune", "campaign.yaml")


@pytest.fixture
def finished(kept: tuple[CommandLine, Said], tmp_path: Path) -> Iterator[tuple[CommandLine, Said]]:
    """The same; what the test does to it is undone: in another folder it is another campaign."""
    folder, saved = kept[0].folder, tmp_path / "saved"
    shutil.copytree(folder, saved)
    yield kept
    shutil.rmtree(folder)
    shutil.copytree(saved, folder)


def test_a_finished_campaign_has_nothing_left_to_do(
    finished: tuple[CommandLine, Said],
) -> None:
    commtune, first = finished
    runs = commtune.query("SELECT count(*) FROM runs")
    again = commtune("tune", "campaign.yaml")
    assert again.code == 0
    assert commtune.query("SELECT count(*) FROM runs") == runs
    # All but the time that it took is the same.
    table = first.out[first.out.index("\n  ") :]
    assert table == again.out[again.out.index("\n  ") :]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(
    commtune: CommandLine, number: signal.Signals
) -> None:
    if number is signal.SIGINT:  # MPICH's launcher and its ranks are to be ended
        commtune.write(SMALL)
    else:
        write_one_rank(commtune)
    with commtune.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(commtune.records()) >= 3, child)
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
    assert out == ""
    assert err.splitlines()[-2:] == [
        "commtune: interrupted; everything measured is kept",
        "  the same command continues small; 'commtune status' shows it",
    ]
    assert "Traceback" not in err
    assert commtune.left_over() == {}
    assert commtune.query("SELECT * FROM locks") == []
    assert commtune.query("SELECT count(*) FROM runs WHERE state != 'stored'") == [(0,)]
    kept = commtune.query("SELECT run_id FROM runs WHERE outcome = 'ok'")
    assert len(kept) >= 2
    assert {file.stem for file in commtune.records() if has_footer(file)} == {r[0] for r in kept}
    if number is not signal.SIGINT:  # nothing else comes after it
        return
    assert commtune.resume_briefly().code == 130
    assert set(kept) <= set(commtune.query("SELECT run_id FROM runs WHERE outcome = 'ok'"))


def test_a_second_controller_is_refused_and_a_dead_one_is_followed(on_each: CommandLine) -> None:
    commtune = on_each
    with commtune.start("tune", "campaign.yaml") as first:
        assert wait_until(lambda: len(commtune.records()) >= 1, first)
        second = commtune("tune", "campaign.yaml")
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert second.code == 3
    message = second.err[second.err.index("commtune: ") :]
    assert f"process {first.pid} on {socket.gethostname()}, since " in message
    assert len(message.splitlines()) <= 4

    third = commtune.resume_briefly()
    assert third.code == 130
    note = f"note: continuing where another controller stopped (process {first.pid} is gone)\n"
    assert note in third.err
    assert commtune.left_over() == {}


def test_an_edited_campaign_is_refused_where_results_would_not_compare(
    finished: tuple[CommandLine, Said],
) -> None:
    commtune, _ = finished
    before = commtune.query("SELECT count(*) FROM runs")

    commtune.write(ONE_RANK.replace("sizes: [1]", "sizes: [2]") + "timing: {max_samples: 11}\n")
    refused = commtune("tune", "campaign.yaml")

    assert refused.code == 2
    assert refused.err[refused.err.index("commtune: ") :] == (
        "commtune: campaign small was started with a different question; changed since "
        "(stored -> now):\n"
        "  timing.max_samples: 200 -> 11\n"
        "  workload.sizes: [1] -> [2]\n"
        "  give the campaign another name, or undo the change\n"
    )
    assert commtune.query("SELECT count(*) FROM runs") == before
    assert commtune.query("SELECT * FROM locks") == []

    # With more to spend it goes on, and will confirm anew what it finds.
    commtune.write(ONE_RANK.replace("trials: 3", "trials: 4"))
    searched = "SELECT count(*) FROM trials WHERE origin NOT IN ('ablated', 'confirm')"
    with commtune.start("tune", "campaign.yaml") as child:
        # The default may run first, at its random place in the block.
        assert wait_until(lambda: commtune.query(searched) == [(5,)], child)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
