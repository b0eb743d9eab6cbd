"""Makes the logs beside this file on a machine with two GPUs.

    python make.py record FOLDER    runs every case; one log a case and rank in FOLDER
    python make.py tidy FOLDER      writes them, trimmed and without names of the machine, here

Needs PyTorch with NCCL, and nothing of commtune. Guard variables of the machine (NCCL_NVLS_ENABLE
and the like) pass through unchanged.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

_SIZES = [2**10, 2**13, 2**16, 2**18, 2**20, 2**22, 2**24, 2**28]
_LIMIT_S = 60
_LOGGING = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL,GRAPH,NET,P2P"}
_CASES: dict[str, dict[str, str]] = {
    "default": {},
    "ring": {"NCCL_ALGO": "Ring"},
    "tree": {"NCCL_ALGO": "Tree"},
    "ll": {"NCCL_PROTO": "LL"},
    "ll128": {"NCCL_PROTO": "LL128"},
    "collnet": {"NCCL_ALGO": "CollnetDirect"},
    "misspelled-name": {"NCCL_ALG0": "Ring"},
    "misspelled-value": {"NCCL_ALGO": "Rong"},
    "channels": {"NCCL_MAX_NCHANNELS": "2"},
    "threads-out-of-range": {"NCCL_NTHREADS": "100", "NCCL_MIN_NCHANNELS": "1000"},
    "not-a-number": {"NCCL_BUFFSIZE": "4M", "NCCL_P2P_DISABLE": "yes"},
    "no-p2p": {"NCCL_P2P_DISABLE": "1"},
    "two-nodes": {"NCCL_HOSTID": "each its own", "NCCL_SOCKET_NTHREADS": "2"},
}


def _record(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, settings) in enumerate(_CASES.items()):
        ranks = [_start(folder, name, settings, rank, 29600 + number) for rank in (0, 1)]
        for rank in ranks:
            try:
                status: object = rank.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                rank.kill()
                status = "took too long"
            print(name, status, flush=True)


def _start(
    folder: Path, name: str, settings: dict[str, str], rank: int, port: int
) -> subprocess.Popen[bytes]:
    own = {"NCCL_HOSTID": f"host{rank}"} if "NCCL_HOSTID" in settings else {}
    environment = {
        **os.environ,
        **_LOGGING,
        **settings,
        **own,
        "NCCL_DEBUG_FILE": str(folder / f"{name}.{rank}.log"),
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    with (folder / f"{name}.{rank}.output").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, __file__, "rank"],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _rank() -> None:
    # By name, so that the project's checks need no PyTorch.
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    for size in _SIZES:
        dist.all_reduce(torch.ones(size // 4, device=device))
    whole = torch.ones(2**20 // 4, device=device)
    dist.reduce_scatter_tensor(torch.empty(2**19 // 4, device=device), whole)
    dist.broadcast(whole, 0)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def _tidy(folder: Path) -> None:
    for name in _CASES:
        text = (folder / f"{name}.0.log").read_text()
        (Path(__file__).parent / f"{name}.txt").write_text(_anonymous(_trimmed(text)))


def _trimmed(text: str) -> str:
    """Without long tables (topology, graphs, estimated times) and what repeats for channels."""
    lines = [line for line in text.splitlines() if not _DULL.search(line)]
    return "\n".join(_first_channels(lines)) + "\n"


def _first_channels(lines: list[str]) -> list[str]:
    """Of lines that say the same of each channel, those of channels 0 and 1."""
    return [line for line in lines if (n := _OF_CHANNEL.search(line)) is None or int(n[1]) < 2]


_OF_CHANNEL = re.compile(r"INFO (?:\+?\s*Channel|Ring|Tree|\s*) ?(\d+)(?:/\d+)? :")
_DULL = re.compile(
    r"NCCL INFO (?:[^|]*\|[^|]*\||[+ ]*(?:PCI|NVL|NET|GPU|CPU)\[|[A-Z]+/\d+-|Trees|===|"
    r"dlvsym|Topology|Could not|ncclTopo|P2P Chunk|Check P2P|\[Proxy|Connected|RAS|MNNVL|"
    r"New proxy|Allocated|UDS|Imported|threadThr|Init timings|P2P/|"
    r"Using user buffer|Symmetric|CC Off|Dmabuf|TOPO|\w+: opCount|comm 0x|.*Profiler)"
    r"|^ *\w+ \|"
)


def _anonymous(text: str) -> str:
    found = re.search(r"(\S+):(\d+):\d+ \[", text)
    assert found is not None
    host, process = found.groups()
    text = re.sub(rf"\b{re.escape(host)}:{process}:\d+\b", "node0:100:100", text)
    text = re.sub(rf"\b{re.escape(host)}\b", "node0", text)
    text = re.sub(r"\b\d+\.\d+\.\d+\.\d+\b", "192.0.2.1", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x1", text)
    return re.sub(r"\[\d{4}-\d\d-\d\d [\d:]+\]", "[2026-01-01 00:00:00]", text)


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        _rank()
    else:
        {"record": _record, "tidy": _tidy}[sys.argv[1]](Path(sys.argv[2]))
