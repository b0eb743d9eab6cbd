"""Libraries' own files of settings, read by the libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from components import require_component
from export_documents import with_values

from commtune.errors import ExportRefused
from commtune.export import render_profile
from commtune.spaces.catalogue.settings_files import read_settings_files

ROOT = Path(__file__).parents[2]
OMPI_INFO = ROOT / ".mpi" / "openmpi-5.0.11" / "bin" / "ompi_info"
UCX = ROOT / ".libraries" / "libucx_cu12-1.22.0" / "libucx" / "lib"
#: Prints what UCP holds after it has read its files, as ``ucx_info -c`` does.
ASK_UCX = """
import ctypes, sys
ucs, uct, ucp = (
    ctypes.CDLL(f"{sys.argv[1]}/lib{part}.so.0", ctypes.RTLD_GLOBAL)
    for part in ("ucs", "uct", "ucp")
)
c, read = ctypes.CDLL(None), ctypes.c_void_p()
assert ucp.ucp_config_read(None, None, ctypes.byref(read)) == 0
ucp.ucp_config_print(read, ctypes.c_void_p.in_dll(c, "stdout"), None, 1)
c.fflush(None)
"""


@pytest.mark.parametrize(
    ("format", "values"),
    [
        ("nccl-conf", {"NCCL_ALGO": "^ring", "NCCL_PROTO": "LL,LL128"}),
        ("rccl-conf", {"NCCL_ALGO": "tree", "RCCL_MSCCL_ENABLE": "0"}),
    ],
)
def test_nccl_and_rccl_read_what_was_exported(
    format: str, values: dict[str, str], tmp_path: Path
) -> None:
    library = format.removesuffix("-conf")
    (tmp_path / f".{library}.conf").write_text(render_profile(format, with_values(values)))
    own, _ = read_settings_files(library, {"HOME": str(tmp_path)}, etc=tmp_path)
    assert {setting.name: setting.value for setting in own} == values


def test_open_mpi_reads_what_was_exported(tmp_path: Path) -> None:
    require_component("wheel:openmpi (make .mpi/openmpi)", OMPI_INFO.is_file())
    values = {
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "ring",
        "OMPI_MCA_coll": "^sm",
    }
    (tmp_path / ".openmpi").mkdir()
    text = render_profile("mca-params", with_values(values))
    (tmp_path / ".openmpi" / "mca-params.conf").write_text(text)
    told = subprocess.run(
        [OMPI_INFO, "--all", "--parsable"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line for line in told.splitlines() if ":source:file" in line]
    assert any(":coll_tuned_allreduce_algorithm:" in line for line in lines), lines[:10]
    assert "mca:coll:base:param:coll:value:^sm" in told
    assert "mca:coll:tuned:param:coll_tuned_allreduce_algorithm:value:ring" in told


def test_ucx_reads_what_was_exported(tmp_path: Path) -> None:
    require_component("UCX (make libraries)", UCX.is_dir())
    values = {"UCX_RNDV_THRESH": "12345", "UCX_TLS": "^cma"}
    (tmp_path / "ucx.conf").write_text(render_profile("ucx-conf", with_values(values)))
    told = subprocess.run(
        [sys.executable, "-c", ASK_UCX, UCX],
        env={"LD_LIBRARY_PATH": str(UCX), "UCX_CONFIG_DIR": str(tmp_path), "HOME": "/"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "UCX_RNDV_THRESH=intra:12345,inter:12345\n" in told
    assert "UCX_TLS=^cma\n" in told


@pytest.mark.parametrize("format", ["nccl-conf", "rccl-conf", "ucx-conf", "mca-params"])
def test_what_a_library_would_not_read_from_its_file_is_refused_by_name(format: str) -> None:
    with pytest.raises(ExportRefused, match="can't carry MPIR_CVAR_X: only"):
        render_profile(format, with_values({"MPIR_CVAR_X": "1"}))
    prefix = {"ucx-conf": "UCX_", "mca-params": "OMPI_MCA_"}.get(format, "NCCL_")
    for value in ("a b", "#", "a\nb", '"', ""):
        with pytest.raises(ExportRefused, match=f"can't carry the value of {prefix}X"):
            render_profile(format, with_values({f"{prefix}X": value}))
