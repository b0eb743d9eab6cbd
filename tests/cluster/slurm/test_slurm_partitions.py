"""What Slurm says of its partitions: a real one, and texts of others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from made_files import write_script
from slurm_cluster import Cluster
from slurm_config import CPUS

from commtune.cluster.scheduler import read_span
from commtune.cluster.slurm import site
from commtune.cluster.slurm.command_output import FIELD, RECORD
from commtune.cluster.slurm.node_kinds import NodeChoice, choose_nodes
from commtune.cluster.slurm.site import _read_partitions, _read_slurm, describe_slurm

CONFIG = """\
Configuration data as of 2026-11-22T01:00:00
AccountingStorageEnforce = associations,limits,qos
ClusterName             = there
MpiDefault              = pmix
SelectType              = select/cons_tres
SLURM_VERSION           = 23.11.10
"""
KINDS = "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\nspecific pmix: pmix_v4\n"


def line(*fields: str) -> str:
    return RECORD + FIELD.join(fields) + FIELD


#: As a site's sinfo could list it: two shapes of nodes in one partition.
LISTED = "\n".join(
    [
        line("gpu*", "2-00:00:00", "1-64", "NO", "90", "2", "32", "515000",
             "gpu:a100:4(S:0-3)", "g[01-90]"),
        line("gpu*", "2-00:00:00", "1-64", "NO", "6", "2", "64", "1030000",
             "gpu:a100:6,gpu:v100:2,tmp:1", "g[91-96]"),
        line("cpu", "infinite", "2-infinite", "EXCLUSIVE", "10", "1", "16", "64000+",
             "(null)", "c[01-10]"),
    ]
)  # fmt: skip


def test_a_real_slurm(shared_slurm: Cluster) -> None:
    seen = describe_slurm(shared_slurm.environment, "n1.example.org")
    assert seen is not None
    assert (seen.cluster, seen.is_node, seen.enforces_accounts) == ("test", True, True)
    assert seen.version.startswith(shared_slurm.call("sinfo", "--version").split()[-1])
    assert [(p.name, p.is_default, p.nodes) for p in seen.partitions] == [
        ("main", True, 3), ("closed", False, 3), ("mixed", False, 4),
    ]  # fmt: skip
    main = seen.partitions[0]
    assert (main.longest, main.most_nodes, main.whole_nodes) == (3600, None, False)
    assert (main.sockets, main.cores, main.gpus) == (1, CPUS, 0)
    assert main.memory >= 256 * 2**20
    assert seen.asks_gpus == "none"
    assert seen.mpi_default == "none"
    assert {"none", "pmi2", "pmix"} <= set(seen.mpi_kinds)


def test_a_login_node_is_none_of_its_nodes(shared_slurm: Cluster) -> None:
    seen = describe_slurm(shared_slurm.environment, "login1")
    assert seen is not None and not seen.is_node


def test_settings_of_the_user_change_nothing(shared_slurm: Cluster) -> None:
    changed = {**shared_slurm.environment, "SINFO_FORMAT": "%n", "SINFO_PARTITION": "closed"}
    seen = describe_slurm(changed, "n1")
    assert seen == describe_slurm(shared_slurm.environment, "n1")


def test_a_slurm_that_does_not_answer(
    shared_slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "_PATIENCE_S", 1.0)  # scontrol looks for its file for a minute
    nowhere = {**shared_slurm.environment, "SLURM_CONF": f"{tmp_path}/slurm.conf"}
    assert describe_slurm(nowhere, "n1") is None
    assert describe_slurm({"PATH": str(tmp_path)}, "n1") is None


def test_partitions_with_gpus_and_several_shapes() -> None:
    gpu, cpu = _read_partitions(LISTED)
    assert (gpu.name, gpu.is_default, gpu.nodes, gpu.most_nodes) == ("gpu", True, 96, 64)
    assert (gpu.cores, gpu.gpus, gpu.longest, gpu.whole_nodes) == (64, 4, 172800, False)
    assert (cpu.most_nodes, cpu.longest, cpu.whole_nodes, cpu.gpus) == (None, None, True, 0)
    assert cpu.memory == 64000 * 2**20


def test_gpus_of_several_models_count_together() -> None:
    more = _read_partitions(LISTED.split("\n")[1])[0]
    assert more.gpus == 8


def test_what_lists_of_another_kind_give() -> None:
    assert _read_partitions("") == ()
    assert _read_partitions("sinfo: error: nothing\n") == ()
    assert _read_partitions(line("gpu*", "1:00:00")) == ()


def test_a_site() -> None:
    seen = _read_slurm(CONFIG, LISTED, KINDS, "g07.there.org")
    assert (seen.cluster, seen.version, seen.is_node) == ("there", "23.11.10", True)
    assert (seen.asks_gpus, seen.mpi_default) == ("gpus-per-node", "pmix")
    assert seen.mpi_kinds == ("none", "pmi2", "pmix", "cray_shasta")
    assert "cpu" in {partition.name for partition in seen.partitions}
    assert "main" not in {partition.name for partition in seen.partitions}
    other = _read_slurm(CONFIG.replace("cons_tres", "linear"), LISTED, KINDS, "login")
    assert (other.asks_gpus, other.is_node) == ("gres", False)
    assert [p.whole_nodes for p in other.partitions] == [True, True]


def test_a_site_without_accounts() -> None:
    seen = _read_slurm("ClusterName = a\n", "", "", "x")
    assert (seen.enforces_accounts, seen.partitions, seen.asks_gpus) == (False, (), "none")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:00:00", 3600), ("30:00", 1800), ("2-00:00:00", 172800), ("1-01:30:05", 91805),
     ("infinite", None), ("n/a", None), ("", None)],
)  # fmt: skip
def test_time_limits(text: str, seconds: float | None) -> None:
    assert read_span(text) == seconds


def test_jobs_get_nodes_of_one_kind(shared_slurm: Cluster, tmp_path: Path) -> None:
    choose = partial(choose_nodes, shared_slurm.environment, folder=tmp_path)
    assert choose("", 2) == choose("mixed", 1) == NodeChoice()
    assert choose("mixed", 2).exclude == ("big",)
    # It is left out of the next job, too.
    assert choose("mixed", 2, allocated=["n1", "n2"]) == NodeChoice(("big",))
    mixed = "nodes differ: n[1-3] (1 x 2 cores); big (4 x 1 cores); results hold for jobs that mix"
    assert choose("mixed", 2, allocated=["n1", "big"]).remark.startswith(mixed)
    assert choose("mixed", 2, exclude=["n[1-2]"]).exclude == ()
    assert choose("mixed", 2, exclude=["big"]) == NodeChoice()


def test_where_slurm_does_not_answer_no_node_is_left_out(tmp_path: Path) -> None:
    assert choose_nodes({"PATH": str(tmp_path)}, "", 2, tmp_path) == NodeChoice()
    write_script(
        tmp_path / "sinfo", "echo 'slurm_load_partitions: Unable to contact controller'\nexit 1"
    )
    assert choose_nodes({"PATH": f"{tmp_path}:/bin"}, "", 2, tmp_path) == NodeChoice()


def test_a_job_knows_the_name_of_its_cluster_without_asking() -> None:
    assert site.cluster_name({"SLURM_CLUSTER_NAME": "here", "PATH": ""}) == "here"
    assert site.cluster_name({"PATH": ""}) == ""
