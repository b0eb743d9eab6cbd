"""Wrong descriptions are refused with file, line and the nearest legal word."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from commtune.commands.reference import systems as command
from commtune.documents.quantities import format_bandwidth, parse_bandwidth
from commtune.errors import DocumentError, InvalidValue, UnknownName
from commtune.systems.loading import load_system
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.schema import System

PLAIN = """\
system: 1
name: small
summary: Two nodes.
checked: 2026-11-21
sources:
  me: I looked
node: {processor: some, cores: 4, numa_nodes: 2, memory: 8GiB, source: me}
gpus: {model: some, vendor: amd, count: 3, memory: 1GiB, numa: [0, 1, 1], source: me}
links:
  - {pairs: [[0, 1]], links: 2, bandwidth: 100 Gb/s, source: me}
  - {pairs: [[1, 2]], links: 1, bandwidth: 50 GB/s, source: me}
nics: {model: some, count: 1, bandwidth: 100 Gb/s, source: me}
network: {fabric: some, topology: one switch, source: me}
slurm:
  account: optional
  partition: main
  gpus: none
  exclusive: false
  source: me
  partitions:
    main: {source: me}
launcher: {command: srun, source: me}
"""


def _path_bandwidth(system: System, a: int, b: int) -> float:
    return fabric_of(system).pair_bandwidths().get((a, b), 0)


#: The same where PBS runs jobs.
BY_PBS = PLAIN[: PLAIN.index("slurm:")] + (
    "scheduler: {kind: pbs, queue: prod, source: me}\n"
    "libraries:\n  - {name: oneccl, version: 2021.15, network: cxi, source: me}\n"
    "launcher: {command: mpiexec, source: me}\n"
)


def written(folder: Path, text: str) -> Path:
    file = folder / "small.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_small_one(tmp_path: Path) -> None:
    system = load_system(written(tmp_path, PLAIN))
    assert system.checked == "2026-11-21"
    assert _path_bandwidth(system, 0, 2) == 25 * 10**9  # the narrower hop, 200 Gb/s
    assert _path_bandwidth(system, 2, 0) == 25 * 10**9


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("cores: 4", "cores: 4, sokets: 1", 7, "unknown key 'sokets' in node", "sockets"),
        (", source: me}\ngpus", "}\ngpus", 7, "key 'source' is missing in node", "add `source"),
        ("source: me}\nnet", "source: mee}\nnet", 12, "no source is called 'mee'", "nearest: me"),
        ("  me: I looked", "  me: I looked\n  you: no", 7, "source 'you' is not used", "leave"),
        ("count: 3", "count: 2", 11, "GPUs 1 and 2 are not a pair of 2 GPUs", "from 0"),
        ("[[0, 1]]", "[[1, 1]]", 10, "GPUs 1 and 1 are not a pair", "from 0"),
        ("numa: [0, 1, 1]", "numa: [0, 1]", 8, "gpus.numa has 2 entries for 3 GPUs", "each GPU"),
        ("numa_nodes: 2, ", "", 8, "node.numa_nodes is not given", "from 0"),
        ("numa_nodes: 2", "numa_nodes: 1", 8, "names NUMA node 1, but node.numa_nodes is 1", ""),
        ("partition: main", "partition: man", 16, "'man' is not among the partitions", "main"),
        ("gpus: none", "gpus: gress", 17, "'gress' is not a known value", "nearest: gres"),
        ("gpus: none", "gpus: none\n  qos: fast", 18, "'fast' is not among those", "list it"),
        ("count: 1, bandwidth: 100 Gb/s", "count: 1, bandwidth: 100Gbps", 12,
         "'100Gbps' has no known unit", "nearest: 100 Gb/s"),
        ("memory: 8GiB", "memory: 8", 7, "node.memory: '8' has no unit", "nearest: 8GiB"),
        ("50 GB/s", "50 GBps", 11, "'50 GBps' has no known unit", "nearest: 50 GB/s"),
        ("50 GB/s", "50", 11, "'50' is not a bandwidth", "with its unit"),
        ("command: srun", "command: srum", 22, "'srum' is not a known value", "nearest: srun"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    tmp_path: Path, old: str, new: str, line: int, message: str, hint: str
) -> None:
    assert old in PLAIN
    file = written(tmp_path, PLAIN.replace(old, new, 1))
    with pytest.raises(DocumentError) as caught:
        load_system(file)
    assert caught.value.message.startswith(f"{file}:{line}: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_links_need_gpus(tmp_path: Path) -> None:
    text = "".join(line for line in PLAIN.splitlines(True) if not line.startswith("gpus:"))
    with pytest.raises(DocumentError, match="links between GPUs, but no `gpus`"):
        load_system(written(tmp_path, text))
    without = "".join(line for line in text.splitlines(True) if "pairs" not in line)
    without = without.replace("links:\n", "").replace("gpus: none", "gpus: gres")
    with pytest.raises(DocumentError, match=r"slurm\.gpus is gres, but there is no `gpus`"):
        load_system(written(tmp_path, without))


def test_a_system_where_pbs_runs_jobs(tmp_path: Path) -> None:
    system = load_system(written(tmp_path, BY_PBS))
    assert system.scheduler and (system.scheduler.kind, system.scheduler.queue) == ("pbs", "prod")


def test_spaces_of_a_library_are_shipped_ones(tmp_path: Path) -> None:
    text = BY_PBS.replace("network: cxi", "network: cxi, spaces: [oneccl-quikc]")
    with pytest.raises(DocumentError) as caught:
        load_system(written(tmp_path, text))
    assert caught.value.message.endswith(
        "small.yaml:16: no shipped space is called 'oneccl-quikc'"
    )
    assert "nearest: oneccl-quick" in caught.value.hint


def test_jobs_are_run_by_one_scheduler(tmp_path: Path) -> None:
    both = PLAIN + "scheduler: {kind: lsf, source: me}\n"
    none = BY_PBS.replace("scheduler:", "# scheduler:")
    for text, line in ((both, 23), (none, 2)):
        with pytest.raises(DocumentError, match=f"small.yaml:{line}: .*either `slurm` or another"):
            load_system(written(tmp_path, text))


def test_gpus_at_a_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = PLAIN[PLAIN.index("  - {pairs") : PLAIN.index("nics:")]
    switch = "  - {pairs: switch, links: 3, bandwidth: 50 GB/s, source: me}\n"
    file = written(tmp_path, PLAIN.replace(links, switch))
    system = load_system(file)
    # All that a GPU has goes to any other one, and not so much to each.
    assert _path_bandwidth(system, 0, 2) == fabric_of(system).injection(0) == 150 * 10**9
    assert fabric_of(system).capacity.get((0, 2), 0) == 0
    command.systems_show_command(str(file), json_output=False)
    shown = capsys.readouterr().out
    assert "each to the switch: 3 x 400 Gb/s (50 GB/s) [me]" in shown
    alltoall = next(line for line in shown.splitlines() if "alltoall " in line)
    assert alltoall.split()[1:3] == ["1200", "(150)"]


def test_an_unknown_name() -> None:
    with pytest.raises(UnknownName) as caught:
        load_system("lummi")
    assert caught.value.message == "no system is called 'lummi'"
    assert "nearest: lumi" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("200 Gb/s", 25e9), ("25GB/s", 25e9), ("1.6 Tb/s", 2e11), ("0.5 TB/s", 5e11), ("8Mb/s", 1e6)],
)
def test_bandwidths(text: str, bytes_per_s: float) -> None:
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize("value", ["fast", "-1 Gb/s", "1 Gb", 25, None, "25 GiB/s", "200 gb/s"])
def test_no_bandwidths(value: object) -> None:
    with pytest.raises(InvalidValue):
        parse_bandwidth(value)


def test_bandwidths_are_shown_in_both_units() -> None:
    assert format_bandwidth(25e9) == "200 Gb/s (25 GB/s)"


def test_the_command_shows_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    command.systems_list_command(json_output=False)
    table, _, more = capsys.readouterr().out.partition("\n\n")
    assert "commtune systems show NAME" in more
    assert [line.split()[0] for line in table.splitlines()[1:]] == [
        "alps", "aurora", "aws-p5", "azure-ndh100v5", "delta", "dgx-a100", "dgx-h100",
        "dgx-h200", "frontera", "frontier", "gcp-a3mega", "isambard-ai", "jupiter", "lassen",
        "leonardo", "lumi", "marenostrum5", "neuron", "perlmutter", "polaris", "stampede3",
        "summit", "vista",
    ]  # fmt: skip
    command.systems_show_command("leonardo", json_output=False)
    shown = capsys.readouterr().out
    description = resources.files("commtune.systems") / "descriptions" / "leonardo.yaml"
    assert shown.startswith(description.read_text(encoding="utf-8"))
    assert "\nread, not measured; facts checked" in shown
    assert shown.endswith(
        "more\n    2 sets of variables for it: commtune systems reference-settings leonardo\n"
        "    14 findings of papers: commtune findings list --system leonardo\n"
    )
    command.systems_show_command("lumi", json_output=True)
    assert json.loads(capsys.readouterr().out)["gpus"]["count"] == 8


def test_the_command_shows_what_operations_could_reach(capsys: pytest.CaptureFixture[str]) -> None:
    command.systems_show_command("lumi", json_output=False)
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert ["0", "-", "1600", "400", "400", "400", "400", "800", "800", "2800"] in rows
    alltoall = next(row for row in rows if row[:1] == ["alltoall"])
    assert alltoall[1:5] == ["700", "(87.5)", "1050", "(131)"]
    assert "4 messages over 1 link x 50 GB/s from GPU 1 to GPU 5" in shown
    assert "alltoall inside a node, all that a die sends" in shown  # where sources disagree
    assert "ports of the GPUs: 0, 0, 1, 1, 2, 2, 3, 3" in shown
    assert max(map(len, shown[shown.index("between GPUs") :].splitlines())) <= 105
    command.systems_show_command("lumi", json_output=True)
    nominal = json.loads(capsys.readouterr().out)["nominal"]
    (found,) = [n for n in nominal if n["operation"] == "alltoall" and n["nodes"] == 1]
    assert found["busbw_Bps"] == 87.5e9 and found["limit_Bps"] == 131.25e9


@pytest.mark.parametrize("name", ["lumi", "leonardo"])
def test_the_tables_in_the_reference_are_what_the_command_says(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command.systems_show_command(name, json_output=False)
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    begin = next(i for i, line in enumerate(shown) if line.startswith("operation"))
    page = Path(__file__).parents[2] / "docs" / "nominal.md"
    assert "\n".join(shown[begin : begin + 11]) in page.read_text(encoding="utf-8")


def test_a_system_without_gpus_or_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [
        line for line in PLAIN.splitlines(True)
        if not line.startswith(("gpus:", "links:", "  - {pairs"))
    ]  # fmt: skip
    command.systems_show_command(str(written(tmp_path, "".join(kept))), json_output=False)
    shown = capsys.readouterr().out
    assert "a rank a node, in host memory" in shown
    allreduce = next(line for line in shown.splitlines() if "allreduce " in line)
    assert allreduce.split()[1:3] == ["100", "(12.5)"]


def test_ports_of_gpus_must_be_there(tmp_path: Path) -> None:
    old = "count: 1, bandwidth: 100 Gb/s"
    for wrong in ("[0, 1, 0]", "[0, 0]"):
        text = PLAIN.replace(old, f"{old}, sharing: {wrong}", 1)
        with pytest.raises(DocumentError, match=r"small.yaml:12: nics\.sharing names a port"):
            load_system(written(tmp_path, text))
    fine = PLAIN.replace(old, f"{old}, sharing: [0, 0, 0]", 1)
    assert load_system(written(tmp_path, fine)).nics.sharing == [0, 0, 0]


def test_the_command_checks_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, PLAIN)
    command.systems_validate_command([good], json_output=False)
    assert capsys.readouterr().out == f"{good}: ok\n"
    bad = tmp_path / "bad.yaml"
    bad.write_text(PLAIN.replace("cores: 4", "cores: 4, sokets: 1"), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        command.systems_validate_command([good, bad], json_output=False)
    assert ended.value.code == 2
    assert "nearest: sockets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.systems_validate_command([bad], json_output=True)
    (result,) = json.loads(capsys.readouterr().out)
    assert result["ok"] is False and result["hint"] == "nearest: sockets"


def test_placeholders_are_said_until_they_are_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, PLAIN)
    command.systems_validate_command([file], json_output=False)
    assert capsys.readouterr().out == f"{file}: ok\n"
    draft = PLAIN.replace("  me: I looked\n", "  me: I looked\n  placeholder: not found\n")
    draft = draft.replace("topology: one switch, source: me", "topology: x, source: placeholder")
    draft = draft.replace("100 Gb/s, source: me}\nnet", "1 Gb/s, source: [me, placeholder]}\nnet")
    file = written(tmp_path, draft)
    command.systems_validate_command([file], json_output=False)
    assert capsys.readouterr().out == f"{file}: ok, but placeholders are in nics, network\n"
    command.systems_show_command(str(file), json_output=False)
    assert "\nplaceholders are in nics, network: correct" in capsys.readouterr().out
