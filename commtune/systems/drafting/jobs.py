"""The part of a first description that jobs are made from."""

from __future__ import annotations

from collections.abc import Iterable

from commtune.systems.detection.seen import SeenMachine, SeenPartition, SeenSlurm
from commtune.systems.drafting.yaml_lines import Page, yaml_duration, yaml_text

#: In the place of a partition's name, where nobody lists any.
_NO_PARTITION = "main"


def draft_jobs(page: Page, seen: SeenMachine, own: SeenPartition | None) -> None:
    """What jobs must ask for: of Slurm, or that something else runs them."""
    page.add()
    if seen.slurm is not None and own is not None:
        _slurm(page, seen, seen.slurm, own)
        return
    if seen.scheduler and seen.slurm is None:
        page.add("scheduler:", "described only: commtune submits to Slurm")
        page.add(f"  kind: {seen.scheduler}", "its commands are on PATH")
        page.add("  source: seen")
        page.unknown.append("the queue for jobs of campaigns (scheduler.queue)")
        return
    page.comment("No scheduler answered here, and a description has `slurm` or `scheduler`.", "")
    page.comment("Campaigns that name it run on Slurm; on this machine, do without.", "")
    page.add("slurm:")
    page.placeholder("  account: optional", "slurm.account", "optional or required")
    page.placeholder(f"  partition: {_NO_PARTITION}", "slurm.partition", "for campaigns")
    page.placeholder("  gpus: none", "slurm.gpus", "gpus-per-node, gres or none")
    page.placeholder("  exclusive: true", "slurm.exclusive", "whether to ask for whole nodes")
    page.add("  source: placeholder")
    page.add("  partitions:")
    page.add(f"    {_NO_PARTITION}: {{source: placeholder}}")
    page.unknown.append("what runs jobs, and what it must be asked for")


def _slurm(page: Page, seen: SeenMachine, slurm: SeenSlurm, own: SeenPartition) -> None:
    page.add("slurm:")
    if slurm.enforces_accounts:
        page.add("  account: required", "Slurm checks accounts; optional if all have a default")
    else:
        page.add("  account: optional", "Slurm here takes jobs without one")
    why = "Slurm's default" if own.is_default else ""
    page.add(f"  partition: {yaml_text(own.name)}", why)
    page.add("  exclusive: true", "whether to ask for whole nodes; others' jobs disturb")
    if own.gpus and seen.gpus is None:
        why = f"{slurm.asks_gpus}, as soon as gpus are described: {own.gpus} a node, by sinfo"
        page.placeholder("  gpus: none", "slurm.gpus", why)
        page.add("  source: [seen, placeholder]")
    else:
        page.add(f"  gpus: {slurm.asks_gpus if own.gpus else 'none'}", "how jobs ask for GPUs")
        page.add("  source: seen")
    page.add("  partitions:", "leave out those that campaigns shall not use")
    for partition in slurm.partitions:
        page.add(f"    {yaml_text(partition.name)}:", f"{partition.nodes} nodes")
        for key, value in _limits(partition):
            page.add(f"      {key}: {value}")
        page.add("      source: seen")
    page.unknown.append("qualities of service and their limits ('sacctmgr show qos')")
    page.unknown.append("whether the switches that Slurm knows are switches or groups of them")


def _limits(partition: SeenPartition) -> Iterable[tuple[str, str]]:
    most = partition.most_nodes or partition.nodes
    if most:
        yield "most_nodes", str(most)
    if partition.longest:
        yield "longest", yaml_duration(partition.longest)
    if partition.whole_nodes is not None:
        yield "whole_nodes", "true" if partition.whole_nodes else "false"


def draft_launch(page: Page, seen: SeenMachine) -> None:
    """What starts ranks, and the MPI."""
    page.add()
    page.add("launcher:")
    if seen.slurm is not None:
        page.add("  command: srun")
        kinds = ", ".join(seen.slurm.mpi_kinds)
        default = seen.slurm.mpi_default or "nothing"
        likely = "pmi2" if seen.mpi and seen.mpi[0] != "openmpi" else "pmix"
        page.comment(f"mpi: {likely}   # srun here knows: {kinds}; without it: {default}")
    else:
        page.add("  command: mpirun" if seen.mpi else "  command: mpiexec")
    page.add("  source: seen" if seen.slurm or seen.mpi else "  source: placeholder")
    if not (seen.slurm or seen.mpi):
        page.placeholders.append("launcher.command")
    if seen.mpi:
        library, version = seen.mpi
        page.add("libraries:", "those of the system; add NCCL, RCCL and what carries them")
        page.add(f"  - {{name: {library}, version: {yaml_text(version)}, source: seen}}")
    else:
        page.unknown.append("the MPI of the system: none is on PATH here; a module may bring it")
