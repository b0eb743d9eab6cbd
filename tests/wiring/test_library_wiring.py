"""Campaigns cut to the versions of libraries that MPI loads by itself, and doctor with them."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import database_values as values
import pytest
from command_line import CommandLine
from components import require_component
from mpi_fixture import session_mpi

from commtune.app.campaigns.preparing import prepare_campaign
from commtune.app.setup.doctor import _check_environment, _versions_below
from commtune.campaign.loading import CampaignSpec, load_campaign, parse_campaign
from commtune.cluster.local.launch import base_environment
from commtune.cluster.machine.description import describe_machine
from commtune.cluster.mpi.discovery import find_mpi
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged, CommtuneError, UserError
from commtune.kernels.library_versions import probe_library_versions, read_versions
from commtune.model import DEFAULT, MpiFlavour, MpiInstallation
from commtune.spaces.loading import load_space
from commtune.spaces.version_filter import cut_space_to_versions
from commtune.wiring import library_versions, space_fitting
from commtune.wiring.campaign_records import record_of
from commtune.wiring.job_handover import _GIVEN_VARIABLE, given_versions, hand_over
from commtune.wiring.library_versions import libraries_named

#: Came with UCX 1.14 and 1.21; the first has always been there.
_OLD, _LATER, _LATEST = "UCX_RNDV_THRESH", "UCX_MIN_RNDV_CHUNK_SIZE", "UCX_MAX_HCA_PER_GPU"
_SPACE = f"""\
space: 1
name: below
version: 1
summary: UCX below an MPI.
library: LIBRARY
versions: ">=1"
facts: [ucx]
parameters:
  - {{name: {_OLD}, values: [1KiB, 4KiB]}}
  - {{name: {_LATER}, values: [4KiB, 16KiB]}}
  - {{name: {_LATEST}, values: [1, 2]}}
"""
_NOWHERE = Path("/nowhere")
NO_MPI = MpiInstallation(
    MpiFlavour.OPENMPI, "5.0.11", _NOWHERE, _NOWHERE / "bin/mpicxx", _NOWHERE / "bin/mpiexec"
)


@pytest.fixture
def mpi(shared_cache: None, monkeypatch: pytest.MonkeyPatch) -> MpiInstallation:  # noqa: ARG001
    """A real MPI, for which the benchmark was built or is."""
    found = session_mpi()
    require_component("an MPI (make .mpi/mpich)", found is not None)
    assert found is not None
    monkeypatch.delenv(_GIVEN_VARIABLE, raising=False)
    return found


def loaded(mpi: MpiInstallation) -> dict[str, str]:
    """UCX's version, where the MPI loads it; the project's MPICH does."""
    alone = probe_library_versions(mpi, base_environment(os.environ, mpi)) or {}
    assert mpi.origin != "wheel:mpich" or alone["ucx"] == "1.20.1"
    return {name: alone[name] for name in ("ucx",) if name in alone}


def campaign(folder: Path, library: str, more: str = "") -> CampaignSpec:
    (folder / "below.yaml").write_text(_SPACE.replace("LIBRARY", library))
    return parse_campaign(f"campaign: 1\nname: x\nspace: ./below.yaml\n{more}", folder)


def test_a_space_is_cut_to_what_is_loaded(mpi: MpiInstallation, tmp_path: Path) -> None:
    if not loaded(mpi):
        pytest.skip(f"{mpi.flavour} {mpi.version} loads no UCX here")
    asked = campaign(tmp_path, mpi.flavour.library)
    fitted = space_fitting.fit_campaign(asked, mpi)
    assert fitted.versions == loaded(mpi)
    assert fitted.plan.space.key == cut_space_to_versions(asked.plan.space, fitted.versions)[0].key
    if mpi.origin == "wheel:mpich":
        assert fitted.plan.space.variables == (_LATER, _OLD)
        assert fitted.remarks == (
            f"note: not searched, since ucx 1.20.1 does not read it: {_LATEST} (since 1.21)",
        )
    assert space_fitting.fit_campaign(fitted, mpi) == fitted


def test_on_slurm_one_process_is_asked(mpi: MpiInstallation, tmp_path: Path) -> None:
    # The launcher would start ranks on this node, where no run is made.
    asked = campaign(tmp_path, mpi.flavour.library, "slurm: {}\n")
    fitted = space_fitting.fit_campaign(asked, replace(mpi, launcher=_NOWHERE / "mpiexec"))
    assert fitted.versions == loaded(mpi)


def test_an_older_version_that_somebody_gives_cuts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=1.13.1,libfabric=1.17")
    fitted = space_fitting.fit_campaign(campaign(tmp_path, "openmpi"), NO_MPI)
    assert fitted.versions == {"ucx": "1.13.1"}  # the space has none of libfabric's
    assert fitted.plan.space.variables == (_OLD,)
    (said,) = fitted.remarks
    assert f"{_LATER} (since 1.14.0)" in said and f"{_LATEST} (since 1.21)" in said
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=9.1")
    newer = space_fitting.fit_campaign(campaign(tmp_path, "openmpi"), NO_MPI)
    assert newer.plan.space.variables == (_LATEST, _LATER, _OLD)
    assert any("ucx 9.1 is newer than what the catalogue" in remark for remark in newer.remarks)


def test_a_version_that_is_not_known_cuts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_GIVEN_VARIABLE, raising=False)
    for slurm in ("", "slurm: {}\n"):
        fitted = space_fitting.fit_campaign(campaign(tmp_path, "openmpi", slurm), NO_MPI)
        assert fitted.versions == {}
        assert fitted.plan.space.variables == (_LATEST, _LATER, _OLD)
        (said,) = fitted.remarks
        assert said.startswith("note: ucx: the version is not known (")
        assert space_fitting.fit_campaign(fitted, NO_MPI) == fitted


def going_on(store: Store, asked: CampaignSpec, mpi: MpiInstallation) -> CampaignSpec:
    """A campaign as it goes on by what is stored of it, if that isn't another question."""
    begun = partial(library_versions.begun_with, store.database.whole_url, asked.plan.name)
    fitted = space_fitting.fit_campaign(asked, mpi, begun)
    handle = store.open_campaign(record_of(fitted, mpi, describe_machine(), Path("x")))
    if not values.count(store, "trials"):  # a good run binds it to its question
        store.add_trial(handle.id, 0, DEFAULT, "baseline")
        values.add_run(store, handle.id, values.request(configuration=DEFAULT, trial=0))
    return fitted


@pytest.mark.parametrize("slurm", ["", "slurm: {}\n"])
def test_a_campaign_goes_on_as_it_was_begun_where_nobody_answers(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm: str
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libmpi.so.40").write_bytes(b"")  # it starts nowhere
    broken = replace(NO_MPI, prefix=tmp_path)
    asked = campaign(tmp_path, "openmpi", slurm)
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=1.13.1")
    first = going_on(store, asked, broken)
    assert first.plan.space.variables == (_OLD,)
    monkeypatch.delenv(_GIVEN_VARIABLE)
    with pytest.raises(CampaignChanged, match=r"space\.content"):
        store.open_campaign(
            record_of(
                space_fitting.fit_campaign(asked, broken), broken, describe_machine(), Path("x")
            )
        )
    for _ in range(2):
        again = going_on(store, asked, broken)
        assert (again.plan, again.versions) == (first.plan, first.versions)
        (said,) = [remark for remark in again.remarks if "can't be asked" in remark]
        assert said.startswith("note: ucx 1.13.1: can't be asked now (")
    # What somebody says is believed, even that nothing is known.
    monkeypatch.setenv(_GIVEN_VARIABLE, "")
    with pytest.raises(CampaignChanged, match=r"space\.content"):
        going_on(store, asked, broken)


def test_what_was_not_known_at_the_start_does_not_cut_later(
    store: Store, mpi: MpiInstallation, tmp_path: Path
) -> None:
    if not loaded(mpi):
        pytest.skip(f"{mpi.flavour} {mpi.version} loads no UCX here")
    asked = campaign(tmp_path, mpi.flavour.library)
    first = going_on(store, asked, replace(mpi, launcher=_NOWHERE / "mpiexec"))
    assert first.versions == {}
    assert "the version is not known" in first.remarks[0]
    again = going_on(store, asked, mpi)
    assert (again.plan, again.versions) == (first.plan, {})
    (said,) = again.remarks
    assert said.startswith(
        f"note: ucx {loaded(mpi)['ucx']}: not known when the campaign was started"
    )


def test_another_version_than_at_the_start_is_found_out(
    store: Store, mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not loaded(mpi):
        pytest.skip(f"{mpi.flavour} {mpi.version} loads no UCX here")
    asked = campaign(tmp_path, mpi.flavour.library)
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=1.13.1")
    going_on(store, asked, mpi)
    monkeypatch.delenv(_GIVEN_VARIABLE)
    with pytest.raises(CampaignChanged):
        going_on(store, asked, mpi)


def test_campaigns_begun_before_versions_were_stored_are_asked_as_ever(
    store: Store, mpi: MpiInstallation, tmp_path: Path
) -> None:
    asked = campaign(tmp_path, mpi.flavour.library)
    fitted = space_fitting.fit_campaign(asked, mpi)
    record = record_of(fitted, mpi, describe_machine(), Path("x"))
    space = {name: value for name, value in record.space.items() if name != "cut_to"}
    assert space != record.space
    store.open_campaign(replace(record, space=space))
    again = going_on(store, asked, mpi)
    assert (again.versions, again.remarks) == (fitted.versions, fitted.remarks)


def test_commands_look_into_their_database(
    store: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = session_mpi()
    require_component("MPICH's wheel", mpi is not None and mpi.origin == "wheel:mpich")
    assert mpi is not None
    campaign(tmp_path, "mpich")
    file = tmp_path / "campaign.yaml"
    file.write_text("campaign: 1\nname: x\nspace: ./below.yaml\nmpi: wheel:mpich\n")
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=1.13.1")
    going_on(store, load_campaign(file), mpi)
    monkeypatch.delenv(_GIVEN_VARIABLE)
    # Nothing can be built that could be asked.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(_NOWHERE))
    spec, _ = prepare_campaign(load_campaign(file), url)
    assert spec.versions == {"ucx": "1.13.1"}
    spec, _ = prepare_campaign(load_campaign(file), f"sqlite:///{tmp_path}/others.db")
    assert spec.versions == {}


def test_nothing_is_asked_where_nothing_hangs_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_GIVEN_VARIABLE, raising=False)
    asked = parse_campaign("campaign: 1\nname: x\nspace: openmpi\n", Path.cwd())
    assert space_fitting.fit_campaign(asked, NO_MPI).versions is None
    assert libraries_named(["OMPI_MCA_pml", "NCCL_IB_SL", "PATH"]) == []
    assert libraries_named(["SLINGSHOT_VNIS", "UCC_CLS"]) == ["libfabric", "ucc"]


def test_jobs_are_handed_what_was_found() -> None:
    assert _GIVEN_VARIABLE not in hand_over({}, None, Path("x"))
    for found in ({}, {"ucx": "1.20.1", "libfabric": "2.5"}):
        assert given_versions({"PATH": "/usr/bin", **hand_over({}, found, Path("x"))}) == found
    assert given_versions({"PATH": "/usr/bin"}) is None
    for wrong in ("usx=1", "ucx", "ucx=", "ucx=new", "1.20"):
        with pytest.raises(UserError, match="is no version"):
            given_versions({_GIVEN_VARIABLE: wrong})


def test_headers_without_versions_and_broken_ones_tell_nothing() -> None:
    assert read_versions(None) == read_versions({}) == read_versions(["1"]) == {}
    assert read_versions({"ucx": "1.2", "libfabric": 2}) == {"ucx": "1.2"}


def test_a_provider_that_a_vendor_brought_first_is_kept() -> None:
    # HPE's libfabric 1.15 has cxi, and others got it with 1.21.
    whole = load_space("cray-mpich-cxi")
    cxi = {name for name in whole.variables if name.startswith("FI_CXI_")}
    assert cxi
    vendors, said = cut_space_to_versions(whole, {"libfabric": "1.15"})
    assert (vendors.key, said) == (whole.key, ())
    by_rccl = load_space("rccl-slingshot-thorough")
    cut, _ = cut_space_to_versions(by_rccl, {"libfabric": "1.20"})
    assert set(by_rccl.variables) - set(cut.variables) == {"FI_HMEM_ROCR_USE_DMABUF"}
    efa, _ = cut_space_to_versions(load_space("nccl-efa"), {"libfabric": "1.17"})
    assert "FI_EFA_USE_HUGE_PAGE" not in efa.variables
    environment = {"FI_CXI_RX_MATCH_MODE": "hybrid", "FI_EFA_USE_HUGE_PAGE": "0"}
    told = [f.what for f in _check_environment(environment, {"libfabric": "1.17"}, _NOWHERE)]
    assert not any("FI_CXI_RX_MATCH_MODE does nothing" in what for what in told)
    assert any("FI_EFA_USE_HUGE_PAGE does nothing: it came with" in what for what in told)


def test_doctor_asks_what_the_mpi_loads(mpi: MpiInstallation) -> None:
    environment = base_environment(os.environ, mpi)
    assert _versions_below(mpi, environment) == {}  # nothing is set
    assert _versions_below(None, {**environment, _OLD: "8K"}) == {}
    found = _versions_below(mpi, {**environment, _LATEST: "1"})
    assert found == loaded(mpi)
    # With this, UCX finds no way to anywhere, and MPICH over UCX does not start.
    broken = {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "nonsense"}
    assert _versions_below(mpi, {**environment, **broken}) == found


def test_doctor_judges_by_what_is_loaded(tmp_path: Path) -> None:
    run = CommandLine(tmp_path, extra={_LATEST: "1", _OLD: "8K", _GIVEN_VARIABLE: "ucx=1.13.1"})
    told = run("doctor")
    assert told.code == 0, told.err
    assert f"{_LATEST} does nothing: it came with UCX 1.21, and 1.13.1 is here" in told.out
    assert f"{_OLD} does nothing" not in told.out


@pytest.mark.slow
def test_a_recording_is_replayed_with_the_versions_that_it_was_made_with(tmp_path: Path) -> None:
    found = session_mpi()
    require_component("MPICH's wheel", found is not None and found.origin == "wheel:mpich")
    (tmp_path / "below.yaml").write_text(_SPACE.replace("LIBRARY", "mpich"))
    (tmp_path / "campaign.yaml").write_text(
        "campaign: 1\nname: x\nspace: ./below.yaml\nmpi: wheel:mpich\nworkload: {sizes: [8]}\n"
        "timing: {max_samples: 10, time_cap: 1ms}\n"
        "budget: {search: 2s, ablation: 100ms, confirmation: 1s, trials: 1}\n"
    )
    commtune = CommandLine(tmp_path, extra={_GIVEN_VARIABLE: "ucx=1.13.1"})
    recorded = commtune.succeed("record", "campaign.yaml", "--runs", "6", "--out", "x.jsonl.gz")
    assert "of 3 configurations" in recorded.out
    del commtune.extra[_GIVEN_VARIABLE]
    replayed = commtune.succeed("tune", "campaign.yaml", "--replay", "x.jsonl.gz")
    assert "ucx 1.13.1 does not read it" in replayed.err


def test_intel_mpi_is_asked_for_what_it_uses_between_nodes() -> None:
    try:
        intel = find_mpi("wheel:impi")
    except CommtuneError:
        require_component("Intel MPI's wheel (make test-wheels)", found=False)
        raise
    alone = probe_library_versions(intel, base_environment(os.environ, intel))
    assert alone is not None and set(alone) == {"libfabric"}
    inside = {**base_environment(os.environ, intel), "I_MPI_FABRICS": "shm"}
    assert probe_library_versions(intel, inside) == {}
