"""What libraries make of variables, as rules of its own: nothing here knows conditions of spaces.

`problems` says what is wrong with the variables of a run: by the facts of the catalogues, and by
the traps that are written down here by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from commtune.spaces.catalogue.loading import load_catalogue
from commtune.spaces.catalogue.schema import Catalogue, Need, Variable

#: For the first part of a space's name, the catalogues of the libraries that read its variables.
READERS = {
    "nccl": ("nccl", "aws-ofi-nccl", "libfabric"),
    "rccl": ("rccl", "nccl", "aws-ofi-nccl", "libfabric"),
    "cray": ("cray-mpich", "libfabric", "rccl"),
    "openmpi": ("openmpi", "ucx", "ucc", "hcoll"),
    "mpich": ("mpich",),
    "mvapich": ("mvapich",),
    "intel": ("intel-mpi", "ucx"),
    "oneccl": ("oneccl",),
}
Environment = Mapping[str, str]


def problems(space: str, run: Environment, chosen: Environment) -> list[str]:
    """What is wrong with a run.

    Args:
        run: all variables that are set; chosen: those of them that a search chose.
    """
    family = space.split("-")[0]
    found = [*_by_catalogue(family, run, chosen), *_TRAPS[family](run)]
    if any(name.startswith("FI_CXI_") for name in run):
        found += _cxi(run)
    return found


@cache
def described(family: str, name: str) -> tuple[Catalogue, Variable] | None:
    for library in READERS[family]:
        catalogue = load_catalogue(library)
        if name in catalogue.variables:
            return catalogue, catalogue.variables[name]
    return None


def _by_catalogue(family: str, run: Environment, chosen: Environment) -> Iterator[str]:
    for name, value in chosen.items():
        yield from _of_a_value(family, name, value)
        if entry := described(family, name):
            yield from _needs(family, name, entry[1], run)


@cache
def _of_a_value(family: str, name: str, value: str) -> tuple[str, ...]:
    """What is wrong with a variable whatever else is set."""
    return (*_in_catalogue(family, name, value), *_of_the_site(name))


def _in_catalogue(family: str, name: str, value: str) -> Iterator[str]:
    entry = described(family, name)
    if entry is None:
        yield f"no library of {family} reads {name}"
        return
    _, variable = entry
    if value in variable.restricted:
        yield f"{name}={value} is restricted"
    if variable.type == "choice" and value not in variable.values:
        yield f"{name} does not take {value}"
    if variable.type in ("integer", "bytes") and not re.fullmatch(r"-?\d+|inf|auto", value):
        yield f"{name}={value} may be misread"
    if variable.level == "forbidden":
        yield f"{name} needs the consent of the site"
    if variable.level == "danger" and not variable.restricted:
        yield f"{name} is dangerous"


def _needs(family: str, name: str, variable: Variable, run: Environment) -> Iterator[str]:
    for need in variable.needs:
        if not _met(family, need, run):
            yield f"{name} without effect: {need}"
    if variable.needs_any and not any(_met(family, n, run) for n in variable.needs_any):
        yield f"{name} without effect: none of its needs"


def _met(family: str, need: Need, run: Environment) -> bool:
    entry = described(family, need.variable)
    value = run.get(need.variable) or (entry[1].default if entry else None) or ""
    value = {"true": "1", "false": "0"}.get(value, value)
    if need.above is not None:
        return value.isdigit() and int(value) > need.above
    if need.one_of is not None:
        return value in need.one_of
    return value not in (need.none_of or [])


def _of_the_site(name: str) -> Iterator[str]:
    if re.search(r"_(SL|TC|TCLASS|TRAFFIC_CLASS|VNI)$", name) or name == "NCCL_CROSS_NIC":
        yield f"{name} is the site's"
    if name in ("NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS"):
        yield f"{name} keeps hardware safe"


def _number(run: Environment, name: str, otherwise: int) -> int:
    return int(run.get(name, otherwise))


def _nccl(run: Environment) -> Iterator[str]:
    yield from _channels(run)
    algorithm, protocol = run.get("NCCL_ALGO", ""), run.get("NCCL_PROTO", "")
    if protocol == "^LL" or ("LL128" in protocol.lstrip("^") and protocol != "^LL128"):
        yield "LL128 is forced"
    simple_only = {"NVLS", "NVLSTree", "PAT", "CollnetDirect", "CollnetChain"}
    if algorithm and not algorithm.startswith("^") and set(algorithm.split(",")) <= simple_only:
        if protocol in ("LL", "LL128"):
            yield f"{algorithm} has no protocol {protocol}"
        if algorithm.startswith("NVLS") and run.get("NCCL_CUMEM_ENABLE") == "0":
            yield "NVLS without cuMem"
    uses_nvls = algorithm in ("", "NVLS", "NVLSTree", "^PAT") and protocol != "LL"
    for name in ("NCCL_NVLS_CHUNKSIZE", "NCCL_NVLSTREE_MAX_CHUNKSIZE", "NCCL_NVLS_NCHANNELS"):
        if name in run and not uses_nvls:
            yield f"{name} without NVLS"
    if "NCCL_LL128_NTHREADS" in run and protocol not in ("", "LL128"):
        yield "threads of LL128 without LL128"
    threads = _number(run, "NCCL_SOCKET_NTHREADS", 0)
    sockets = _number(run, "NCCL_NSOCKS_PERTHREAD", 1)
    if threads * sockets > 64:
        yield "more than 64 sockets"
    if threads == 0 and "NCCL_NSOCKS_PERTHREAD" in run:
        yield "sockets without threads"
    if "NCCL_SHM_MEMCPY_MODE" in run and run.get("NCCL_SHM_DISABLE") == "1":
        yield "shared memory is off"
    yield from _plugin(run)


def _channels(run: Environment) -> Iterator[str]:
    """What NCCL and RCCL have in common."""
    if _number(run, "NCCL_MIN_NCHANNELS", 1) > _number(run, "NCCL_MAX_NCHANNELS", 1 << 20):
        yield "minimum of channels above the maximum"
    if any(n.endswith("_CTAS") for n in run) and any(n.endswith("X_NCHANNELS") for n in run):
        yield "two names for the limits of channels"
    most = _number(run, "NCCL_MAX_P2P_NCHANNELS", 1 << 20)
    names = ("NCCL_MIN_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_NCHANNELS_PER_PEER")
    for name in names:
        if _number(run, name, 1) > most:
            yield f"{name} above all channels"
    # RCCL: p2pnChannels is the lesser of all channels and this limit (ncclTopoComputeP2pChannels).
    if _number(run, "NCCL_NCHANNELS_PER_PEER", 1) > _number(run, "NCCL_MAX_NCHANNELS", 1 << 20):
        yield "more channels for a peer than NCCL_MAX_NCHANNELS leaves"
    for name in ("NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE"):
        if name in run and 8 * _number(run, name, 0) > _number(run, "NCCL_BUFFSIZE", 4 << 20):
            yield f"8 times {name} don't fit into the buffer"


def _plugin(run: Environment) -> Iterator[str]:
    eager = _number(run, "OFI_NCCL_EAGER_MAX_SIZE", 8192)
    if run.get("OFI_NCCL_EARLY_COMPLETION") == "1" and eager != -1:
        yield "early completion with eager messages"
    if eager > _number(run, "OFI_NCCL_MIN_STRIPE_SIZE", 128 << 10):
        yield "eager messages above the least stripe"
    if "OFI_NCCL_TUNER_TYPE" in run and "OFI_NCCL_FORCE_NUM_RAILS" in run:
        yield "no tuner with a forced number of rails"
    rdma = ("OFI_NCCL_EAGER_MAX_SIZE", "OFI_NCCL_MIN_STRIPE_SIZE", "OFI_NCCL_RR_CTRL_MSG")
    if run.get("OFI_NCCL_PROTOCOL") == "SENDRECV" and any(name in run for name in rdma):
        yield "settings of another protocol of the plugin"


def _rccl(run: Environment) -> Iterator[str]:
    yield from _channels(run)
    if {"NCCL_NCHANNELS_PER_PEER", "NCCL_NCHANNELS_PER_NET_PEER"} <= run.keys():
        yield "NCCL_NCHANNELS_PER_PEER puts NCCL_NCHANNELS_PER_NET_PEER aside"
    if run.get("NCCL_PROTO") in ("^LL", "LL128", "LL,LL128", "^Simple"):
        yield "LL128 is forced"
    if "RCCL_IB_SPLIT_DATA_THRESHOLD" in run and run.get("NCCL_IB_SPLIT_DATA_ON_QPS") != "1":
        yield "a threshold of what is off"
    yield from _plugin(run)


def _cxi(run: Environment) -> Iterator[str]:
    threshold = _number(run, "FI_CXI_RDZV_THRESHOLD", 16384)
    least_get = _number(run, "FI_CXI_RDZV_GET_MIN", 2049)
    if threshold + least_get > _number(run, "FI_CXI_OFLOW_BUF_SIZE", 12582912):
        yield "threshold and least get don't fit into the overflow buffer"
    if 0 < threshold < 192:
        yield "a threshold that is raised"
    if _number(run, "FI_CXI_RDZV_EAGER_SIZE", 0) > threshold:
        yield "an eager part that is cut"
    if "FI_CXI_RDZV_PROTO" in run:
        yield "works only in jobs that were started for it"
    mode = run.get("FI_CXI_RX_MATCH_MODE", "hardware")
    if mode == "software" and any(name.startswith("FI_CXI_OFLOW") for name in run):
        yield "overflow buffers in software matching"


def _cray(run: Environment) -> Iterator[str]:
    if run.get("MPICH_GPU_SUPPORT_ENABLED") != "1":
        yield "GPU buffers without support for them"
    if run.get("MPICH_OFI_NIC_POLICY") == "USER":
        yield "a policy without its mapping"
    if run.get("MPICH_GPU_ALLREDUCE_USE_KERNEL") == "0" and "MPICH_GPU_ALLREDUCE_BLK_SIZE" in run:
        yield "blocks of a kernel that is off"
    if any(name.startswith(("NCCL_", "RCCL_")) for name in run):
        yield "variables of another library"
    if "MPICH_SMP_SINGLE_COPY_SIZE" in run and run.get("MPICH_SMP_SINGLE_COPY_MODE") == "NONE":
        yield "a size of what is off"


_HAN_FIRST = ("allreduce", "bcast", "reduce", "allgather", "gather", "scatter", "barrier")
_TWO_PROC = {"alltoall": "5", "allgather": "6", "allgatherv": "5", "barrier": "5"}
_SEGMENTED = {"allreduce": "5", "bcast": "234567", "reduce": "23456", "gather": "3"}


def _openmpi(run: Environment) -> Iterator[str]:
    for name in run:
        match = re.fullmatch(r"OMPI_MCA_coll_tuned_([a-z_]+?)_algorithm(_\w+)?", name)
        if match and match[2] is None:
            yield from _forced(run, match[1])
        elif match:
            chosen = run.get(f"OMPI_MCA_coll_tuned_{match[1]}_algorithm", "0")
            yield from _of_an_algorithm(match[1], match[2], chosen)
        of_ob1 = name.startswith(("OMPI_MCA_btl_", "OMPI_MCA_smsc", "OMPI_MCA_pml_ob1_"))
        if of_ob1 and run.get("OMPI_MCA_pml") != "ob1":
            yield f"{name} without ob1"
        if name.startswith(("UCX_", "OMPI_MCA_pml_ucx_")) and run.get("OMPI_MCA_pml") != "ucx":
            yield f"{name} without ucx"
        if name.startswith("HCOLL_") and run.get("OMPI_MCA_coll_hcoll_enable") == "0":
            yield f"{name} without hcoll"
        if name.startswith("UCC_") and run.get("OMPI_MCA_coll_ucc_enable") != "1":
            yield f"{name} without ucc"
        of_han = name.startswith("OMPI_MCA_coll_han_") and not name.endswith("_priority")
        if of_han and _number(run, "OMPI_MCA_coll_han_priority", 0) <= 30:
            yield f"{name}, and han does not come first"
    limits = ("eager_limit", "rndv_eager_limit", "max_send_size")
    limited = any(f"OMPI_MCA_btl_sm_{limit}" in run for limit in limits)
    if limited and run.get("OMPI_MCA_smsc", "xpmem") == "xpmem":
        yield "limits that XPMEM sets itself"
    most = _number(run, "OMPI_MCA_btl_sm_max_send_size", 32768)
    if _number(run, "OMPI_MCA_btl_sm_eager_limit", 0) > most:
        yield "an eager message above a fragment"
    lists = run.get("UCC_TLS", "all")
    if not lists.startswith("^") and "all" not in lists and "ucp" not in lists:
        yield "operations that no transport layer has"
    yield from _ucx(run)


def _ucx(run: Environment) -> Iterator[str]:
    if run.get("UCX_RNDV_THRESH") == "inf" and "UCX_RNDV_SCHEME" in run:
        yield "a scheme without rendezvous"
    if "UCX_PROTO_ENABLE" in run:
        yield "another meaning of all thresholds"
    only = run.get("UCX_TLS", "all")
    for name, transport in (("UCX_RC_", "rc"), ("UCX_DC_", "dc")):
        is_read = only == "all" or only.startswith("^") or transport in only.split(",")
        if any(n.startswith(name) for n in run) and not is_read:
            yield f"{name}* without the transport {transport}"


def _forced(run: Environment, collective: str) -> Iterator[str]:
    name = f"OMPI_MCA_coll_tuned_{collective}_algorithm"
    if run.get("OMPI_MCA_coll_tuned_use_dynamic_rules") != "1":
        yield f"{name} without dynamic rules"
    if run.get("OMPI_MCA_coll_hcoll_enable") != "0":
        yield f"{name}, and hcoll comes first"
    if collective in _HAN_FIRST and _number(run, "OMPI_MCA_coll_han_priority", 35) >= 30:
        yield f"{name}, and han comes first"
    if run[name] in ("0", _TWO_PROC.get(collective)):
        yield f"{name}={run[name]}"


def _of_an_algorithm(collective: str, what: str, chosen: str) -> Iterator[str]:
    readers = {
        "_segmentsize": _SEGMENTED.get(collective, ""),
        "_chain_fanout": "2" if collective in ("bcast", "reduce") else "",
        "_knomial_radix": "7" if collective == "bcast" else "",
        "_max_requests": {"alltoall": "4", "reduce": "23456"}.get(collective, ""),
    }
    if chosen not in readers.get(what, "") or chosen == "0":
        yield f"{collective}{what}, which algorithm {chosen} does not read"


_RADIX = {
    "MPIR_CVAR_ALLREDUCE_TREE_KVAL": ("ALLREDUCE", {"tree"}),
    "MPIR_CVAR_ALLREDUCE_RECEXCH_KVAL": ("ALLREDUCE", {"recexch", "k_reduce_scatter_allgather"}),
    "MPIR_CVAR_ALLREDUCE_RECURSIVE_MULTIPLYING_KVAL": ("ALLREDUCE", {"recursive_multiplying"}),
    "MPIR_CVAR_BCAST_TREE_KVAL": ("BCAST", {"tree", "pipelined_tree"}),
    "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": ("BCAST", {"pipelined_tree"}),
    "MPIR_CVAR_ALLGATHER_BRUCKS_KVAL": ("ALLGATHER", {"k_brucks"}),
    "MPIR_CVAR_ALLGATHER_RECEXCH_KVAL": ("ALLGATHER", {"recexch_doubling", "recexch_halving"}),
    "MPIR_CVAR_ALLTOALL_BRUCKS_KVAL": ("ALLTOALL", {"k_brucks"}),
    "MPIR_CVAR_ALLTOALL_THROTTLE": ("ALLTOALL", {"scattered"}),
}


def _mpich(run: Environment) -> Iterator[str]:
    device = run.get("MPIR_CVAR_DEVICE_COLLECTIVES", "percoll")
    for name, value in run.items():
        if name.endswith("_INTRA_ALGORITHM") and "POSIX" not in name:
            if device != "none":
                yield f"{name} behind the device's collectives"
            if value in ("auto", "smp", "ccl", "reduce_scatter_allgather"):
                yield f"{name}={value} may be replaced in silence"
        if (name.endswith("_COMPOSITION") or "_POSIX_INTRA_" in name) and device == "none":
            yield f"{name} without the device's collectives"
        if name.endswith("_COMPOSITION") and value not in ("1", "2"):
            yield f"{name}={value} may give way in silence"
        if name in _RADIX:
            operation, algorithms = _RADIX[name]
            if run.get(f"MPIR_CVAR_{operation}_INTRA_ALGORITHM") not in algorithms:
                yield f"{name}, which no algorithm reads"
    if _number(run, "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", 0) > 16384:
        yield "MPI_Init aborts"
    protocol = run.get("MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL")
    staged = any("_OFI_GPU_" in name for name in run)
    if staged and run.get("MPIR_CVAR_CH4_OFI_ENABLE_HMEM", "0") != "0":
        yield "an engine for staging, and nothing is staged"
    if "MPIR_CVAR_CH4_OFI_ENABLE_GPU_PIPELINE" in run:
        yield "undefined where one buffer is in host memory"
    if run.get("MPIR_CVAR_CH4_IPC_GPU_HANDLE_CACHE") == "generic":
        yield "handles that outlive their memory"
    if "MPIR_CVAR_CH4_OFI_PIPELINE_CHUNK_SZ" in run and protocol != "pipeline":
        yield "a chunk without a pipeline"


def _intel(run: Environment) -> Iterator[str]:
    if "I_MPI_FABRICS" in run or run.get("I_MPI_SHM") == "disable":
        yield "does not start on every machine"
    if any(n.startswith("I_MPI_ADJUST_") and not 1 <= int(v) <= 32 for n, v in run.items()):
        yield "no such preset"
    if any(n.startswith("UCX_") for n in run) and run.get("I_MPI_OFI_PROVIDER") != "mlx":
        yield "only the provider mlx is UCX"
    yield from _ucx(run)


def _mvapich(run: Environment) -> Iterator[str]:
    if any(n.startswith("MV2_") for n in run) and any(n.startswith("MVP_") for n in run):
        yield "variables of two libraries"
    if any(n.startswith("MV2_") for n in run) and run.get("MV2_USE_CUDA") != "1":
        yield "a pointer to GPU memory crashes"
    for name in ("MV2_CUDA_IPC_THRESHOLD", "MV2_CUDA_SMP_IPC", "MV2_CUDA_USE_IPC_BCAST"):
        if name in run and run.get("MV2_CUDA_IPC") == "0":
            yield f"{name} without IPC"
    for name in ("MV2_GPUDIRECT_LIMIT", "MV2_USE_GPUDIRECT_RECEIVE_LIMIT"):
        if name in run and run.get("MV2_USE_GPUDIRECT_RDMA") == "0":
            yield f"{name} without GPUDirect RDMA"
    share = "MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD" in run
    if share and run.get("MV2_RAIL_SHARING_POLICY") == "USE_FIRST":
        yield "a message can't be shared by one adapter"
    if run.get("MV2_CUDA_NONBLOCKING_STREAMS") == "0" or "MV2_USE_LAZY_MEM_UNREGISTER" in run:
        yield "may give wrong data"
    levels = run.get("MVP_ALLREDUCE_TUNING_IS_TWO_LEVEL") == "1"
    between = run.get("MVP_ALLREDUCE_INTER_NODE_TUNING_ALGO", "UNSET")
    if between.startswith("MCAST") or between == "SOCK_AWARE":
        yield f"{between} may be replaced in silence"
    if levels and (between == "UNSET" or run.get("MVP_USE_SHMEM_ALLREDUCE") == "0"):
        yield "two levels, and nothing asks for them"
    if "MVP_ALLREDUCE_INTRA_NODE_TUNING_ALGO" in run and not levels:
        yield "an algorithm inside nodes of one level"
    if _number(run, "MVP_SMP_EAGERSIZE", 0) > 65536:
        yield "MPI_Init may fail"


def _oneccl(run: Environment) -> Iterator[str]:
    for name, value in run.items():
        if name.endswith("_SCALEOUT") and run.get(name.removesuffix("_SCALEOUT")) != "topo":
            yield f"{name} without topo"
        if value == "ring_rma":
            yield f"{name}={value} may be replaced in silence"
        if value == "direct" and run.get("CCL_ATL_TRANSPORT", "mpi") != "mpi":
            yield f"{name}=direct without the transport mpi"


_TRAPS = {
    "nccl": _nccl,
    "rccl": _rccl,
    "cray": _cray,
    "openmpi": _openmpi,
    "mpich": _mpich,
    "mvapich": _mvapich,
    "intel": _intel,
    "oneccl": _oneccl,
}
