"""A campaign of NCCL whose profiles become rules: of two ranks on two nodes of one machine."""

from __future__ import annotations

from pathlib import Path

import database_values as given
from stores import opened_store

from commtune.app.profiles.rule_files import CampaignRules, prepare_rules, write_rules
from commtune.db.records import StackRecord
from commtune.model import Backend, Configuration, Operation, Profile, Verdict, Workload

KIB = 1024
SMALL = {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}
LARGE = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}
WORKLOAD = Workload(Operation.ALLREDUCE, (8, KIB, 4 * KIB), backend=Backend.XCCL, emulated_nodes=2)


def _profile(size: int, settings: dict[str, str]) -> Profile:
    verdict = Verdict.FASTER if settings else Verdict.DEFAULT
    return given.profile(
        f"allreduce-{size}", backend="xccl", nodes=2, bytes_low=size, bytes_high=size, guards=(),
        points=(given.point(size, "all"),), configuration=Configuration(settings), verdict=verdict,
        note="",
    )  # fmt: skip


def store_nccl_campaign(
    folder: Path, *settings: dict[str, str], stack: tuple[str, str] = ("nccl", "2.28.9")
) -> str:
    """The URL of a database with a campaign; its profiles are for 8 B, 1 KiB and 4 KiB."""
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        name, version = stack
        description = {"mpi": "mpich", "version": "5.0.2", name: version}
        record = StackRecord("stack-1", f"{name.upper()} {version}", description)
        what = {"operation": "allreduce", "workload": WORKLOAD.plain(), "timing": {}}
        number = store.open_campaign(given.campaign("one", stack=record, what=what)).id
        profiles = [
            _profile(size, own) for size, own in zip(WORKLOAD.sizes, settings, strict=True)
        ]
        store.save_profiles(number, profiles)
    return url


def export_nccl_rules(folder: Path) -> tuple[CampaignRules, Path]:
    """A file of two rules: from 91 B, and from 2049 B to 4 KiB."""
    url = store_nccl_campaign(folder, {}, SMALL, LARGE)
    rules, file = prepare_rules("one", "nccl-tuner", db=url), folder / "rules.csv"
    write_rules(rules, file)
    return rules, file
