"""Variables that keep hardware safe."""

from __future__ import annotations

#: Set by administrators; they pass to every run unchanged wherever they are set, and nothing may
#: search them: NVLink multicast can take shared GPUs out of service.
PROTECTED_NAMES = (
    "NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST",
)  # fmt: skip
