"""The script of a block on a real Slurm: limits, exit files, what stands beside, and only once."""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from dataclasses import replace

import pytest
from hostile_values import NASTY
from left_over import living, wait_until_gone, wait_until_living
from slurm_cluster import Cluster
from slurm_scripts import shown, submitted

from commtune.cluster.placement import Distance, find_distance
from commtune.cluster.slurm.allocation import Srun
from commtune.errors import UserError
from commtune.slurm_templates.background_command import BackgroundCommand, Presence
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Job, Step, render_block


class Block:
    """A block's folder and the script that is made for it."""

    def __init__(self, cluster: Cluster, nodes: int = 1, name: str = "") -> None:
        self.cluster = cluster
        self.word = f"block-{uuid.uuid4().hex}"
        self.place = cluster.folder / (name or self.word)
        self.place.mkdir()
        self.log = cluster.folder / f"{self.word}.out"
        self.job = Job(self.word, nodes, 1, 300, str(self.log))
        self.wish = JobRequest(nodes=nodes)

    def step(
        self, number: int, *command: str, limit_s: float = 100,
        beside: BackgroundCommand | None = None,
        environment: dict[str, str] | None = None,
    ) -> Step:  # fmt: skip
        """A launch of a command; its word is in the command line of every rank."""
        words = launch_words(None, self.wish, command)
        output, ended = self.place / f"{number}.out", self.place / f"{number}.exit"
        return Step(
            words, str(output), str(ended), environment or {}, time_limit_s=limit_s, beside=beside
        )

    def submit(self, *steps: Step) -> str:
        return submitted(self.cluster, render_block(self.job, steps, self.place))

    def ended(self, name: str) -> tuple[int, float, float]:
        """The status, the begin and the end in an exit file."""
        text = (self.place / name).read_text()
        assert re.fullmatch(r"\d+ \d+\.\d{6} \d+\.\d{6}\n", text)
        status, begin, end = text.split()
        return int(status), float(begin), float(end)

    def said(self, name: str) -> str:
        return (self.place / name).read_text(errors="replace")


def test_nodes_say_where_they_stand(cluster: Cluster) -> None:
    """Where Slurm's description of the network is not to be had, its tasks know their place."""
    block = Block(cluster, nodes=3)
    srun = Srun()
    places = srun.place_command(3)
    script = render_block(block.job, (block.step(0, "true"),), block.place, places=places)
    cluster.until(submitted(cluster, script), "COMPLETED")
    topology = srun.read_places(block.said("places"))
    assert set(topology) == {"n1", "n2", "n3"}
    assert find_distance(topology, ["n1", "n2"]) is Distance.SAME_SWITCH
    assert find_distance(topology, ["n1", "n3"]) is Distance.SAME_GROUP
    assert block.ended("0.exit")[0] == 0


def test_exit_files_say_status_and_times(cluster: Cluster) -> None:
    block, before = Block(cluster, nodes=2), time.time()
    says = "echo rank $SLURM_PROCID of $SLURM_NTASKS"
    waits = 'until [ -e "$0" ]; do sleep 0.05; done; sleep 0.5'
    last = f'[ $SLURM_PROCID = 0 ] && : >"$0" || {{ {waits}; }}'
    steps = (
        # A rank that fails ends the others: it does so when the other is through.
        block.step(0, "sh", "-c", f"{says}; {last}; exit $SLURM_PROCID", str(block.place / "0")),
        block.step(1, "sleep", "0.3"),
        block.step(2, "no-such-program"),
    )
    cluster.until(block.submit(*steps), "COMPLETED")
    found = [block.ended(f"{i}.exit") for i in range(3)]
    assert [status for status, _, _ in found] == [1, 0, 2]
    assert sorted(block.said("0.out").splitlines())[:2] == ["rank 0 of 2", "rank 1 of 2"]
    times = [moment for _, begin, end in found for moment in (begin, end)]
    finished, begun, over = block.ended("finished")
    assert finished == 0
    in_order = [before, begun, *times, over, time.time()]
    assert in_order == sorted(in_order)
    assert found[1][2] - found[1][1] >= 0.3
    assert not [p for p in block.place.iterdir() if p.suffix == ".part"]


def test_where_it_ran_is_written_down(cluster: Cluster) -> None:
    block = Block(cluster, nodes=2)
    number = block.submit(block.step(0, "true"))
    cluster.until(number, "COMPLETED")
    lines = dict(line.split("=", 1) for line in block.said("nodes").splitlines())
    assert lines["SLURM_JOB_ID"] == number
    assert lines["SLURM_JOB_NODELIST"] == shown(cluster, number)["NodeList"]


@pytest.mark.parametrize("ignoring", ["", "trap '' TERM; "])
def test_a_step_ends_at_its_limit_and_leaves_no_process(cluster: Cluster, ignoring: str) -> None:
    block = Block(cluster, nodes=2)
    program = f"{ignoring}while :; do sleep 0.1; done"
    steps = (
        block.step(0, "sh", "-c", program, block.word, limit_s=1.5),
        block.step(1, "echo", "after"),
    )
    cluster.until(block.submit(*steps), "COMPLETED")
    status, begin, end = block.ended("0.exit")
    assert status == 124
    assert end - begin >= 1.5
    assert block.ended("1.exit")[0] == 0
    said = block.said("1.out").splitlines()  # srun may say that it waits for a busy node
    assert [line for line in said if not line.startswith("srun: ")] == ["after", "after"]
    assert not living(block.word)


def test_ranks_of_an_srun_that_was_killed_are_ended_before_the_next_step(cluster: Cluster) -> None:
    block = Block(cluster)
    everything = "for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$file; echo; done 2>/dev/null"
    steps = (
        block.step(0, "sh", "-c", "while :; do sleep 0.1; done", block.word),
        block.step(1, "sh", "-c", everything),
    )
    number = block.submit(*steps)
    found = wait_until_living(f"sleep 0.1; done {block.word}", 4)  # timeout, srun twice, the rank
    srun = next(process for process, line in found.items() if line.startswith("srun"))
    # As timeout does it: srun has a helper in its group that would end the ranks.
    os.killpg(os.getpgid(srun), signal.SIGKILL)
    cluster.until(number, "COMPLETED")
    assert block.ended("0.exit")[0] == 137
    assert "for file in /proc" in block.said("1.out")
    assert f"sleep 0.1; done {block.word}" not in block.said("1.out")


def test_a_second_job_for_a_block_measures_nothing(cluster: Cluster) -> None:
    block = Block(cluster)
    step = block.step(0, "sh", "-c", f"echo once >>'{block.place}/count'")
    cluster.until(block.submit(step), "COMPLETED")
    first = {p.name: p.read_text() for p in block.place.iterdir() if p.is_file()}
    cluster.until(block.submit(step), "COMPLETED")
    assert {p.name: p.read_text() for p in block.place.iterdir() if p.is_file()} == first
    assert first["count"] == "once\n"
    assert "this block was already started" in block.log.read_text()


def test_a_block_without_its_folder_fails_and_says_why(cluster: Cluster) -> None:
    block = Block(cluster)
    block.place.rmdir()
    cluster.until(block.submit(block.step(0, "true")), "FAILED")
    assert f"nothing can be written in {block.place}" in block.log.read_text()


def test_a_module_that_cannot_be_loaded_finishes_the_block(cluster: Cluster) -> None:
    block = Block(cluster)
    block.job = replace(block.job, modules=("no-such-module",))
    cluster.until(block.submit(block.step(0, "true")), "FAILED")
    assert block.ended("finished")[0] == 3
    assert not (block.place / "0.exit").exists()


def test_a_block_that_can_not_write_an_exit_file_stops(cluster: Cluster) -> None:
    block = Block(cluster)
    # What is written there finds no room.
    (block.place / "0.exit.part").symlink_to("/dev/full")
    second = block.place / "second"
    job = block.submit(block.step(0, "true"), block.step(1, "touch", str(second)))
    cluster.until(job, "FAILED")
    assert block.ended("finished")[0] == 3
    assert "No space left on device" in block.log.read_text()
    assert not second.exists()


def test_a_cancelled_block_leaves_no_process_and_no_run_that_ended_well(cluster: Cluster) -> None:
    block = Block(cluster)
    number = block.submit(
        block.step(0, "sh", "-c", "while :; do sleep 0.1; done", block.word), block.step(1, "true")
    )
    # timeout, srun twice, the rank: before the rank is there, srun fails, and says so by itself.
    wait_until_living(f"sleep 0.1; done {block.word}", 4)
    cluster.call("scancel", number)
    cluster.until(number, "CANCELLED")
    assert not wait_until_gone(block.word)
    names = {p.name for p in block.place.iterdir()}
    # Slurm may end the run before its script, which then says so, or is at it when it is ended.
    assert "1.exit" not in names
    assert "0.exit" not in names or block.ended("0.exit")[0] != 0
    assert "finished" not in names or block.ended("finished")[0] == 143


def test_what_stands_beside_begins_before_and_is_ended_after(cluster: Cluster) -> None:
    block = Block(cluster, nodes=2)
    block.wish = replace(block.wish, nodes=1)
    noise = "trap '' TERM; env; echo here it is; while :; do sleep 0.1; done"
    words = launch_words(None, block.wish, ("sh", "-c", noise, block.word), first_node=1)
    beside = BackgroundCommand(words, sign="here it is", stop_file=str(block.place / "stop"))
    file = block.place / "0.out.beside"
    finds = f"grep -q '^here it is' {file} && echo $SLURMD_NODENAME"
    steps = (
        block.step(0, "sh", "-c", finds, beside=beside, environment={"MINE": "of the step"}),
        block.step(1, "echo", "after"),
    )
    cluster.until(block.submit(*steps), "COMPLETED")
    assert [block.ended(f"{i}.exit")[0] for i in range(2)] == [0, 0]
    other = re.findall(r"SLURMD_NODENAME=(.*)", block.said("0.out.beside"))
    assert other and other[0] != block.said("0.out").splitlines()[-1]
    assert "MINE=" not in block.said("0.out.beside")
    assert Presence.read(block.said("0.out.beside")).was_there
    assert not (block.place / "stop").exists()
    assert not living(block.word)


def test_what_ended_too_early_says_so(cluster: Cluster) -> None:
    block = Block(cluster)
    word = str(block.place / "over")
    begun, over = 'until [ -s "$0" ]', 'until [ ! -d "/proc/$(cat "$0")" ]'
    after_it = "; ".join(f"{condition}; do sleep 0.05; done" for condition in (begun, over))
    beside = BackgroundCommand(("sh", "-c", 'echo $PPID >"$0"', word))
    step = block.step(0, "sh", "-c", after_it, word, beside=beside)
    cluster.until(block.submit(step), "COMPLETED")
    found = Presence.read(block.said("0.out.beside"))
    assert found.why == "it ended before what it stood beside"
    assert block.ended("0.exit")[0] == 0


def test_what_does_not_begin_is_not_run_beside(cluster: Cluster) -> None:
    block = Block(cluster)
    beside = BackgroundCommand(("sh", "-c", "echo no ranks; exit 4"), sign="sending")
    steps = (block.step(0, "echo", "run", beside=beside), block.step(1, "echo", "after"))
    cluster.until(block.submit(*steps), "COMPLETED")
    assert [block.ended(f"{i}.exit")[0] for i in range(2)] == [125, 0]
    assert not (block.place / "0.out").exists()
    assert block.said("0.out.beside").startswith("no ranks\n")
    assert Presence.read(block.said("0.out.beside")).why == "it ended before it began its work"


@pytest.mark.parametrize(
    "name",
    ["'; touch RAN; '", "$(touch RAN) `touch RAN`", 'a "b"\\ c', "line\nbreak", "\u00fc -n"],
)
def test_nasty_folders_get_all_files_and_run_nothing(cluster: Cluster, name: str) -> None:
    block = Block(cluster, name=name)
    stop = f"{block.place}/stop"
    stays = 'echo up; while [ ! -e "$0" ]; do sleep 0.05; done'
    beside = BackgroundCommand(("sh", "-c", stays, stop), sign="up", stop_file=stop)
    step = block.step(0, "printf", "%s", name, beside=beside, environment={"A": name})
    cluster.until(block.submit(step), "COMPLETED")
    assert sorted(p.name for p in block.place.iterdir()) == [
        "0.exit", "0.out", "0.out.beside", "finished", "nodes", "started",
    ]  # fmt: skip
    assert block.said("0.out") == name
    assert not list(cluster.folder.rglob("RAN"))


def test_nasty_arguments_reach_every_rank_unchanged(cluster: Cluster) -> None:
    block = Block(cluster, nodes=2)
    block.wish = replace(block.wish, prefix=("env", "PREFIX=a b;'c'"))
    writes = 'printf "%s\\0" "$PREFIX" "$@" >"$0.$SLURM_PROCID"'
    step = block.step(0, "sh", "-c", writes, str(block.place / "rank"), *NASTY)
    cluster.until(block.submit(step), "COMPLETED")
    for rank in range(2):
        found = (block.place / f"rank.{rank}").read_bytes().split(b"\0")[:-1]
        assert found == [os.fsencode(word) for word in ("a b;'c'", *NASTY)]
    assert not list(cluster.folder.rglob("RAN"))


@pytest.mark.parametrize("value", NASTY)
def test_nasty_job_names_arrive_or_are_refused_by_name(shared_slurm: Cluster, value: str) -> None:
    cluster = shared_slurm
    block = Block(cluster)
    job = replace(block.job, name=value)
    try:
        script = render_block(job, (block.step(0, "true"),), block.place)
    except UserError as error:
        assert error.message.startswith("name: ")
        return
    number = submitted(cluster, script)
    assert shown(cluster, number)["JobName"] == value
    cluster.call("scancel", number)


def test_sbatch_finds_nothing_wrong_with_a_script(cluster: Cluster) -> None:
    block = Block(cluster, nodes=2)
    block.job = replace(block.job, switches=1, exclusive=True, exclude="n3")
    file = cluster.folder / "tested.sh"
    file.write_text(render_block(block.job, (block.step(0, "true"),), block.place))
    assert "to start at" in cluster.call("sbatch", "--test-only", str(file))
