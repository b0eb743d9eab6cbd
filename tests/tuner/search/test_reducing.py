"""Configurations without idle parameters."""

from __future__ import annotations

import random

import pytest

from commtune.model import Configuration
from commtune.spaces.loading import load_space
from commtune.spaces.space import Space
from commtune.tuner.search.encoding import Encoding
from commtune.tuner.search.reducing import Reduction


def unset_one_by_one(space: Space, idle: list[str], configuration: Configuration) -> Configuration:
    """Unsets each idle parameter, if that is legal and takes none with it that is not idle."""
    small = space.assignment(configuration)
    for name in idle:
        if small[name] is None:
            continue
        left = space.unset_parameters(small, [name])
        whole = None if left is None else space.assignment(space.configuration(left))
        if whole and all(n in idle for n in small if whole[n] != small[n]):
            small = whole
    return space.configuration(small)


@pytest.mark.parametrize("name", ["mpich", "mpich-host-allreduce", "openmpi", "nccl-node"])
def test_each_idle_parameter_is_unset_unless_another_needs_it(name: str) -> None:
    space, rng = load_space(name), random.Random(1)
    encoding, kept = Encoding(space), 0
    names = [parameter.name for parameter in space.parameters]
    for _ in range(4):
        idle = rng.sample(names, len(names) // 2)
        items = (item for item in encoding.encoded_values if names[item[0]] in idle)
        reduction = Reduction(encoding, sorted(items, key=lambda item: idle.index(names[item[0]])))
        for configuration in (space.sample(rng) for _ in range(150)):
            found = reduction.reduce(configuration)
            assert found == unset_one_by_one(space, idle, configuration)
            assert encoding.rows([found]).tolist() == Encoding(space).rows([found]).tolist()
            kept += any(space.assignment(found)[one] is not None for one in idle)
    assert kept
