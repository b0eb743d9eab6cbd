"""Times of measurements as columns."""

from __future__ import annotations

import math

from commtune.model.runs import SizeTime
from commtune.model.size_times import SizeTimes


def test_columns_say_what_the_measurements_said() -> None:
    times = SizeTimes()
    times.add(3, [SizeTime(8, 1e-6, 2e-6, None, 0.0), SizeTime(16, 3e-6, None, 4e-6, 0.0)])
    times.add(4, [])
    times.add(5, [SizeTime(8, 5e-6, None, None, 0.0)])
    assert (times.run.tolist(), times.bytes.tolist()) == ([3, 3, 5], [8, 16, 8])
    assert times.time_s.tolist() == [1e-6, 3e-6, 5e-6]
    assert times.canary_s[0] == 2e-6 and times.canary_after_s[1] == 4e-6
    assert all(map(math.isnan, [*times.canary_s[1:], times.canary_after_s[0]]))
