"""Which GPUs are ours."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from commtune.cluster.machine.gpus import Gpu, _count_visible, _parse_nvidia_smi, require_gpus
from commtune.errors import MissingComponent, UserError

H200 = Gpu("nvidia", "NVIDIA H200", "580.95.05")
MI250 = Gpu("amd", "gfx90a", "6.3.6")


def test_what_nvidia_smi_prints() -> None:
    text = "NVIDIA H200, 580.95.05\nNVIDIA H200, 580.95.05\n"
    assert _parse_nvidia_smi(text) == [H200, H200]
    assert _parse_nvidia_smi("No devices were found\n") == []


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 4),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, 2),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0),
        # As CUDA reads it, the list ends at the first that is none.
        ({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "GPU-5d0ba1ff, MIG-41f3"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, 4),
        ({"ROCR_VISIBLE_DEVICES": "0"}, 4),
    ],
)
def test_lists_of_visible_gpus(environment: Mapping[str, str], count: int) -> None:
    assert _count_visible([H200] * 4, environment) == count


def test_amd_has_lists_of_its_own() -> None:
    assert _count_visible([MI250] * 8, {"ROCR_VISIBLE_DEVICES": "0,1,2,3"}) == 4
    assert _count_visible([MI250] * 8, {"HIP_VISIBLE_DEVICES": "0"}) == 1
    assert _count_visible([], {"CUDA_VISIBLE_DEVICES": "0"}) == 0


def test_a_rank_needs_a_gpu() -> None:
    require_gpus([H200] * 2, {}, 2)
    with pytest.raises(UserError) as few:
        require_gpus([H200] * 4, {"CUDA_VISIBLE_DEVICES": "0,1"}, 4)
    assert few.value.message == (
        "4 ranks need 4 GPUs, one each, and 2 of 4 can be used here (CUDA_VISIBLE_DEVICES=0,1)"
    )
    assert few.value.hint == "ask for at most 2 ranks"
    with pytest.raises(MissingComponent) as none:
        require_gpus([], {}, 2)
    assert "no GPU" in none.value.message
