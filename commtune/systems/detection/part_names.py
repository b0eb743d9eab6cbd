"""Names of parts: what drivers call them, and what descriptions and data sheets do."""

from __future__ import annotations

import re

#: By the target that AMD's driver names: the GPUs that have it.
_AMD = {
    "gfx906": ("MI50", "MI60"),
    "gfx908": ("MI100",),
    "gfx90a": ("MI250X", "MI250", "MI210"),
    "gfx942": ("MI300X", "MI300A", "MI325X"),
    "gfx950": ("MI350X", "MI355X"),
}
#: Letters and a number as GPUs are called: A100, GH200, MI250X, L40S.
_GPU = re.compile(r"(?<![A-Z0-9])[A-Z]{1,3}\d{2,4}[A-Z]?(?![A-Z0-9])")
#: By the number in MTnnnn, which is the PCI device's in decimal.
_MELLANOX = {
    "4099": "ConnectX-3", "4103": "ConnectX-3 Pro", "4113": "Connect-IB", "4115": "ConnectX-4",
    "4117": "ConnectX-4 Lx", "4119": "ConnectX-5", "4121": "ConnectX-5 Ex", "4123": "ConnectX-6",
    "4125": "ConnectX-6 Dx", "4127": "ConnectX-6 Lx", "4129": "ConnectX-7", "4131": "ConnectX-8",
    "41682": "BlueField", "41686": "BlueField-2", "41692": "BlueField-3",
}  # fmt: skip
#: How the driver's or device's name begins, and the adapter's name.
_ADAPTERS = (
    ("cxi", "HPE Slingshot 11"),
    ("efa", "AWS Elastic Fabric Adapter"),
    ("rdmap", "AWS Elastic Fabric Adapter"),
    ("hfi1", "Omni-Path"),
)
#: In the names of adapters; "Mellanox HDR" names a speed.
_FAMILIES = ("connectx", "connect-ib", "bluefield", "slingshot", "cassini", "efa", "elastic",
             "omni-path", "opa")  # fmt: skip
#: Further names that descriptions give an adapter.
_ALSO = {
    "HPE Slingshot 11": ("slingshot", "cassini", "cxi"),
    "AWS Elastic Fabric Adapter": ("efa",),
    "Omni-Path": ("opa",),
    "ConnectX-5 Ex": ("connectx-5",),
}


def gpu_names(found: str) -> tuple[str, ...]:
    """What a GPU may be called in a description, from what the driver calls it.

    ``gfx90a`` gives all GPUs of that target: the driver doesn't say which.
    """
    if found in _AMD:
        return (*_AMD[found], found.upper())
    return tuple(_GPU.findall(found.upper())) or (found.upper(),)


def is_same_gpu(described: str, found: str) -> bool:
    """Whether a description's name and a driver's may mean the same model."""
    if found not in _AMD and not _GPU.search(found.upper()):
        return found.upper() in described.upper()
    return not set(_GPU.findall(described.upper())).isdisjoint(gpu_names(found))


def adapter_name(found: str) -> str:
    """The trade name of a network adapter, from what the device or driver is called."""
    if match := re.fullmatch(r"MT(\d+)(?:_.*)?", found):
        return _MELLANOX.get(match[1], found)
    return next((name for begin, name in _ADAPTERS if found.startswith(begin)), found)


def is_same_adapter(described: str, found: str) -> bool | None:
    """Whether two names may mean the same adapter; ``None`` where one doesn't say which."""
    names = (found.lower(), *_ALSO.get(found, ()))
    if any(name in described.lower() for name in names):
        return True
    says = any(family in described.lower() for family in _FAMILIES)
    return False if says and is_trade_name(found) else None


def is_trade_name(found: str) -> bool:
    """Whether an adapter's name is one that people use, and not only its driver's."""
    return found in _MELLANOX.values() or found in {name for _, name in _ADAPTERS}
