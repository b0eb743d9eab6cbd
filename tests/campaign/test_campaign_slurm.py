"""What a campaign file says of Slurm: keys, what follows from them, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import CampaignSpec, load_campaign, parse_campaign
from commtune.errors import DocumentError
from commtune.model import Aggressor, AggressorPattern
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.quoting import ShellCode
from commtune.systems.loading import load_system
from commtune.wiring.allocations import allocation_script

HEAD = "campaign: 1\nname: night\nspace: mpich-host\n"  # three lines


def read(text: str, folder: Path = Path()) -> CampaignSpec:
    return parse_campaign(HEAD + text, folder)


def refused(folder: Path, text: str, head: str = HEAD) -> tuple[str, str]:
    """What is said of a file, without its folder, and the hint."""
    file = folder / "night.yaml"
    file.write_text(head + text, encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        load_campaign(file)
    return caught.value.message.replace(f"{folder}/", ""), caught.value.hint


def test_a_campaign_without_the_key_stays_on_this_machine() -> None:
    spec = read("workload: {ranks: 2}\n")
    assert (spec.job_request, spec.system, spec.plan.aggressor) == (None, None, None)
    assert spec.plan.workload.nodes == 1
    assert spec.plan.budget.node_hours is None


def test_controller_and_ranks_run_in_the_uenv_that_is_asked_for(tmp_path: Path) -> None:
    asked = "slurm: {uenv: 'prgenv-gnu/25.6:v2', view: default}\n"
    spec = read(f"workload: {{ranks: 2}}\n{asked}")
    assert spec.job_request is not None
    script = allocation_script(spec, tmp_path, "sqlite:///x", tmp_path / "n.yaml").render("k")
    (started,) = [line for line in script.splitlines() if "exec -- " in line]
    assert "'uenv' run --view=default prgenv-gnu/25.6:v2 -- " in started
    assert {"--uenv=prgenv-gnu/25.6:v2", "--view=default"} <= {
        *launch_words(None, spec.job_request, ("bench",))
    }
    # Results in other environments don't compare; the question of other campaigns stays.
    without = JobRequest(nodes=1, ranks_per_node=2).question()
    assert spec.job_request.question() == {
        **without,
        "uenv": "prgenv-gnu/25.6:v2",
        "view": "default",
    }


def test_an_empty_wish_is_one() -> None:
    assert read("slurm: {}\nworkload: {ranks: 4}\n").job_request == JobRequest(
        nodes=1, ranks_per_node=4
    )


def test_every_key_has_its_field(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    text = """\
workload: {ranks: 6, nodes: 3}
slurm:
  account: project_1
  partition: gpu
  qos: normal
  constraint: "[a|b]&c"
  reservation: night
  gres: gpu:4
  gpus_per_node: 2
  cpus_per_rank: 7
  memory: 0
  exclusive: yes
  launcher: srun
  mpi: pmix
  launcher_options: [--overlap, "--label"]
  cpu_bind: map_cpu:1,2
  gpu_bind: closest
  modules: [gcc/13, my mpi]
  container: ./image.sif
  container_command: apptainer exec --bind '/a b'
  prefix: numactl -l
  before: |
    ulimit -s unlimited
    echo $HOSTNAME
  after: echo done
  templates: ours
  jobs: 8
  placement: same-switch
  exclude: n[1,3],n7
  time: 8h
  poll: 10s
"""
    wish = read(text, tmp_path).job_request
    assert wish == JobRequest(
        account="project_1",
        partition="gpu",
        qos="normal",
        constraint="[a|b]&c",
        reservation="night",
        gres="gpu:4",
        gpus_per_node=2,
        cpus_per_rank=7,
        memory="0",
        exclusive=True,
        nodes=3,
        ranks_per_node=2,
        launcher="srun",
        mpi="pmix",
        launcher_options=("--overlap", "--label"),
        cpu_bind="map_cpu:1,2",
        gpu_bind="closest",
        modules=("gcc/13", "my mpi"),
        container=str(tmp_path / "image.sif"),
        container_command=("apptainer", "exec", "--bind", "/a b"),
        prefix=("numactl", "-l"),
        before=ShellCode("ulimit -s unlimited\necho $HOSTNAME\n"),
        after=ShellCode("echo done"),
        templates=tmp_path / "ours",
        jobs=8,
        placement="same-switch",
        exclude=("n[1,3]", "n7"),
        time_s=28800,
        poll_s=10,
    )
    assert isinstance(wish.before, ShellCode)


def test_a_system_is_a_name_or_a_file_beside_the_campaign(tmp_path: Path) -> None:
    shipped = Path("commtune/systems/descriptions/leonardo.yaml")
    text = Path(__file__).parents[2].joinpath(shipped).read_text(encoding="utf-8")
    (tmp_path / "ours.yaml").write_text(text.replace("name: leonardo", "name: ours"))
    spec = read("system: ./ours.yaml\nslurm: {account: a}\n", tmp_path)
    assert spec.system and spec.system.name == "ours"
    spec = read("system: leonardo\nslurm: {account: a}\n")
    assert spec.system == load_system("leonardo")
    assert spec.job_request == JobRequest(account="a", ranks_per_node=2)


def test_a_system_without_slurm_is_refused(tmp_path: Path) -> None:
    lumi = Path("commtune/systems/descriptions/lumi.yaml").read_text(encoding="utf-8")
    begin, end = lumi.index("slurm:\n  account"), lumi.index("launcher:\n")
    other = "scheduler: {kind: lsf, source: jobs}\n"
    (tmp_path / "ours.yaml").write_text(lumi[:begin] + other + lumi[end:], encoding="utf-8")
    said, hint = refused(tmp_path, "system: ./ours.yaml\n")
    jobs = "jobs of lumi are run by LSF, and commtune supports Slurm and PBS only"
    assert said == f"night.yaml:4: {jobs}"
    assert "without 'system'" in hint


def test_guards_of_the_system_pass_unchanged() -> None:
    spec = read(
        "system: leonardo\nslurm: {account: a}\nprotected_variables: [UCX_TLS, NCCL_IB_SL]\n"
    )
    assert spec.protected_variables == ("UCX_TLS", "NCCL_IB_SL", "UCX_IB_SL")


CRAY = "campaign: 1\nname: night\nspace: cray-mpich-cxi\n"
LUMI = "system: lumi\nslurm: {account: a}\n"


def test_pins_of_the_system_are_pins_of_the_space() -> None:
    plain = parse_campaign(CRAY, Path()).plan.space
    spec = parse_campaign(CRAY + LUMI, Path())
    assert spec.plan.space.pinned == {**plain.pinned, "MPICH_GPU_SUPPORT_ENABLED": "1"}
    assert spec.plan.space.key != plain.key
    assert read(LUMI).plan.space.pinned == read("").plan.space.pinned  # for Cray MPICH only


def own_system(folder: Path, **variables: str) -> str:
    """A campaign's lines for a system of one's own that pins variables, or guards where empty."""
    text = (Path(__file__).parents[2] / "commtune/systems/descriptions/lumi.yaml").read_text()
    text = text.replace("library: cray-mpich", "library: mpich").replace(
        "name: lumi", "name: ours"
    )
    for name, value in variables.items():
        if value:
            entry = f'pinned:\n  {name}: {{value: "{value}", why: so, source: jobs}}\n'
            text = text.replace("pinned:\n", entry)
        else:
            text += f"guard:\n  {name}: {{why: It can harm others., source: jobs}}\n"
    (folder / "ours.yaml").write_text(text)
    return "system: ./ours.yaml\nslurm: {account: a}\n"


_CMA = "MPIR_CVAR_CH4_CMA_ENABLE"


def test_a_pin_that_is_searched_is_refused_and_mended_by_a_pin(tmp_path: Path) -> None:
    text = own_system(tmp_path, **{_CMA: "0"})
    message, hint = refused(tmp_path, text)
    assert message == (f"night.yaml:4: ours pins {_CMA} to 0, and space mpich-host searches it")
    assert hint == f"remove it from the search: pin: {{{_CMA}: 0}}"
    mended = read(f"{text}pin: {{{_CMA}: 0}}\n", tmp_path).plan.space
    assert mended.pinned[_CMA] == "0"


@pytest.mark.parametrize(
    ("pin", "here"), [("65536", "pinned to 65536"), ("unset", "pinned to be unset")]
)
def test_pins_that_differ_are_refused(tmp_path: Path, pin: str, here: str) -> None:
    name = "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD"
    text = own_system(tmp_path, **{name: "16384"}) + f"seed: 3\npin:\n  {name}: {pin}\n"
    message, hint = refused(tmp_path, text)
    assert message == f"night.yaml:8: ours pins {name} to 16384, and here it is {here}"
    assert hint.startswith("write 16384, or")


def test_what_the_system_guards_is_not_searched_nor_pinned(tmp_path: Path) -> None:
    text = own_system(tmp_path, **{_CMA: ""})
    message, hint = refused(tmp_path, text)
    assert message == f"night.yaml:4: {_CMA} is protected on ours: It can harm others."
    assert hint == f"leave it to the site: pin: {{{_CMA}: unset}}"
    assert refused(tmp_path, f"{text}pin: {{{_CMA}: 1}}\n")[0].startswith("night.yaml:6: ")
    spec = read(f"{text}pin: {{{_CMA}: unset}}\n", tmp_path)
    assert spec.protected_variables == (_CMA,)
    assert _CMA not in spec.plan.space.variables


REFUSED = {
    "a typo": (
        "slurm:\n  acount: a\n", "night.yaml:5: unknown key 'acount' in slurm", "nearest: account",
    ),
    "a word that is none": (
        "slurm:\n  mpi: pmi3\n", "night.yaml:5: slurm.mpi: 'pmi3' is not a known value",
        "nearest: pmix",
    ),
    "a dash for an underscore": (
        "slurm: {gpus-per-node: 4}\n", "night.yaml:4: unknown key 'gpus-per-node' in slurm",
        "nearest: gpus_per_node",
    ),
    "what sbatch would read otherwise": (
        "slurm:\n  partition: a b\n",
        "night.yaml:5: slurm.partition: 'a b' can't be the value of a job's option: it holds "
        "a blank",
        "use letters, digits and . , : = + @ / ~ ^ * & | ( ) [ ] - _",
    ),
    "a name of a node": (
        "slurm:\n  exclude: [n1, 'n$(x)']\n",
        "night.yaml:5: slurm.exclude: 'n$(x)' can't be the value of a job's option: it holds "
        "'$'",
        "use letters, digits and . , : = + @ / ~ ^ * & | ( ) [ ] - _",
    ),
    "open quotes": (
        "slurm:\n  prefix: numactl '-l\n",
        "night.yaml:5: slurm.prefix: 'numactl '-l' can't be split into words: "
        "no closing quotation",
        "close the quotes, or write a list of words",
    ),
    "a word that YAML takes for another": (
        "slurm:\n  modules: [on]\n", "night.yaml:5: slurm.modules: on without quotes is a truth "
        "value in YAML", 'write "on"',
    ),
    "uneven": (
        "workload:\n  nodes: 2\n  ranks: 3\nslurm: {}\n",
        "night.yaml:6: 3 ranks can't be divided evenly among 2 nodes", "nearest: ranks: 2 or 4",
    ),
    "more nodes than ranks": (
        "workload:\n  nodes: 4\nslurm: {}\n",
        "night.yaml:5: 2 ranks can't be divided evenly among 4 nodes", "nearest: ranks: 4",
    ),
    "nodes without Slurm": (
        "workload:\n  nodes: 2\n",
        "night.yaml:5: a campaign on 2 nodes needs a scheduler: 'slurm', 'pbs' or 'system'",
        "add `slurm: {}`, with what your site requires: account, partition; or `pbs: {}`",
    ),
    "a system that is not there": (
        "system: lummi\n", "night.yaml:4: no system is called 'lummi'",
        "nearest: lumi; a file is named with its ending: ./NAME.yaml",
    ),
    "a file that is not there": (
        "system: ./ours.yaml\n", "night.yaml:4: there is no system description ours.yaml",
        "paths start at the campaign file's folder; shipped: commtune systems list",
    ),
    "no account": (
        "system: lumi\nslurm:\n  partition: dev-g\n",
        "night.yaml:5: lumi takes no job without an account",
        "name the account, in a campaign file by `slurm: {account: NAME}`",
    ),
    "a system, and nothing else": (
        "system: lumi\n", "night.yaml:1: lumi takes no job without an account",
        "name the account, in a campaign file by `slurm: {account: NAME}`",
    ),
    "an unknown partition": (
        "system: lumi\nslurm:\n  account: a\n  partition: standart-g\n",
        "night.yaml:7: no partition 'standart-g' in the description", "nearest: standard-g",
    ),
    "an unknown quality of service": (
        "system: leonardo\nslurm: {account: a, qos: boost_qos_dgb}\n",
        "night.yaml:5: no quality of service 'boost_qos_dgb' in partition boost_usr_prod",
        "nearest: boost_qos_dbg",
    ),
    "too many nodes": (
        "system: leonardo\nslurm: {account: a}\nworkload:\n  ranks: 400\n  nodes: 100\n",
        "night.yaml:8: boost_usr_prod: 100 nodes, but at most 64 are allowed",
        "would do: boost_usr_prod with boost_qos_bprod",
    ),
    "too many with the aggressor's": (
        "system: leonardo\nslurm: {account: a, qos: boost_qos_dbg}\n"
        "aggressor: {pattern: incast, nodes: 2}\n",
        "night.yaml:1: boost_qos_dbg: 3 nodes, but at most 2 are allowed",
        "would do: boost_usr_prod, boost_usr_prod with boost_qos_lprod",
    ),
    "too long an allocation": (
        "system: leonardo\nslurm:\n  account: a\n  time: 25h\n",
        "night.yaml:7: boost_usr_prod: 90000 s, but at most 86400 s are allowed",
        "would do: boost_usr_prod with boost_qos_lprod",
    ),
    "a placement": (
        "slurm:\n  placement: same-group\n",
        "night.yaml:5: Slurm can keep a job within one of its switches, but not within a group, "
        "unless the description of the system says that a switch of Slurm's is a whole group",
        "ask for placement: same-switch, or any; in a description of your own, write "
        "`switches: group` under `slurm` where it is so",
    ),
    "what only srun does": (
        "slurm:\n  launcher: mpirun\n  cpu_bind: cores\n",
        "night.yaml:6: cpu_bind is an option of srun, but mpirun starts the ranks",
        "leave it out; launcher_options are given to mpirun as they are",
    ),
    "a uenv without srun": (
        "slurm:\n  launcher: mpirun\n  uenv: 'a/1:v2'\n  view: default\n",
        "night.yaml:6: uenv is an option of srun, but mpirun starts the ranks",
        "leave it out; launcher_options are given to mpirun as they are",
    ),
    "a view alone": (
        "slurm:\n  view: default\n",
        "night.yaml:5: a view without a uenv", "add `uenv: NAME/VERSION:TAG`",
    ),
    "a container's command alone": (
        "slurm:\n  container_command: podman run\n",
        "night.yaml:5: a container command without a container", "add `container: IMAGE`",
    ),
    "templates that are not there": (
        "slurm:\n  templates: ./ours\n",
        "night.yaml:5: there is no folder of templates ours",
        "paths start at the campaign file's folder",
    ),
    "an aggressor without Slurm": (
        "aggressor: {pattern: incast, nodes: 2}\n",
        "night.yaml:4: an aggressor needs nodes of its own, from Slurm",
        "add `slurm: {}`, with what your site requires: account, partition",
    ),
    "an aggressor of one": (
        "slurm: {}\naggressor:\n  pattern: incast\n  nodes: 1\n",
        "night.yaml:7: an aggressor of one rank has nobody to send to",
        "give it 2 nodes, or 2 ranks_per_node",
    ),
    "an aggressor without room": (
        "slurm: {}\naggressor:\n  pattern: alltoall\n  nodes: 4\n  message: 512MiB\n",
        "night.yaml:8: messages of 512 MiB for each of 4 ranks are more than 1 GiB in one rank",
        "at most 256 MiB",
    ),
    "node-hours": (
        "slurm: {}\nworkload: {ranks: 4, nodes: 2}\n"
        "budget: {search: 1h, ablation: 30min, confirmation: 30min,\n  node_hours: 3}\n",
        "night.yaml:7: 2 h 00 min on 2 nodes are 4 node-hours, and there are 3",
        "raise node_hours above 4, or leave the times out: they then share 1 h 30 min",
    ),
    "node-hours that leave nothing": (
        "budget:\n  search: 1h\n  node_hours: 1\n",
        "night.yaml:6: 1 h 00 min on 1 node are 1 node-hours, and there are 1",
        "raise node_hours above 1, or leave the times out: they then share 1 h 00 min",
    ),
    "no node-hours": (
        "budget: {node_hours: 0}\n", "night.yaml:4: budget.node_hours: '0' is out of range",
        "write a number above 0",
    ),
    "node-hours with an underscore": (
        "budget: {node_hours: 1_0}\n", "night.yaml:4: budget.node_hours: '1_0' is not a number",
        "write it in digits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_where_and_what_would_do(tmp_path: Path, name: str) -> None:
    text, *said = REFUSED[name]
    assert list(refused(tmp_path, text)) == said


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("node_hours: 4", (3600.0, 1440.0, 2160.0)),
        ("node_hours: 4, search: 1h", (3600.0, 1440.0, 2160.0)),
        ("node_hours: 4, search: 30min, ablation: 30min", (1800.0, 1800.0, 3600.0)),
        ("node_hours: 400, search: 10s, ablation: 2s, confirmation: 3s", (10.0, 2.0, 3.0)),
        ("search: 10s", (10.0, 20.0, 30.0)),
    ],
)
def test_times_follow_from_node_hours(text: str, times: tuple[float, float, float]) -> None:
    lines = f"slurm: {{}}\nworkload: {{ranks: 4, nodes: 2}}\nbudget: {{{text}}}\n"
    found = read(lines).plan.budget
    assert (found.search_s, found.ablation_s, found.confirmation_s) == pytest.approx(times)
    assert found.node_hours == (None if "node" not in text else float(text.split()[1].strip(",")))


def test_an_aggressor_is_told_by_its_keys() -> None:
    text = "slurm: {}\naggressor: {pattern: alltoall, nodes: 4, message: 1MiB, burst: 2ms}\n"
    assert read(text).plan.aggressor == Aggressor(
        AggressorPattern.ALLTOALL, 4, message_bytes=2**20, burst_s=0.002
    )


def test_what_changes_results_is_part_of_the_question() -> None:
    wish = JobRequest(modules=("a", "b"), before=ShellCode("x"), account="a")
    question = wish.question()
    assert question["modules"] == ["a", "b"]
    assert type(question["before"]) is str
    assert not {"account", "jobs", "mpi"} & question.keys()
