"""Two machine states are told apart where there are two, and never invented."""

import random

from commtune.tuner.statistics.machine_states import ALL, FAST, MIDDLE, MIXED, SLOW, fit_states


def test_two_speeds_are_found() -> None:
    rng = random.Random(1)
    canaries = [80e-9 * rng.lognormvariate(0, 0.05) for _ in range(60)]
    canaries += [430e-9 * rng.lognormvariate(0, 0.05) for _ in range(20)]
    rng.shuffle(canaries)

    speeds = fit_states(canaries)

    assert len(speeds.thresholds_s) == 1
    assert 100e-9 < speeds.thresholds_s[0] < 350e-9
    assert speeds.name(82e-9, 79e-9) == FAST
    assert speeds.name(420e-9, 440e-9) == SLOW
    assert speeds.name(80e-9, 430e-9) == MIXED
    assert speeds.name(None, None) == MIXED


def test_one_speed_stays_one_whatever_its_noise() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        canaries = [80e-9 * rng.lognormvariate(0, 0.15) for _ in range(rng.randrange(5, 200))]
        assert fit_states(canaries).thresholds_s == (), seed
    assert fit_states([80e-9] * 50).name(80e-9, 400e-9) == ALL


def test_few_values_say_nothing() -> None:
    assert fit_states([80e-9, 400e-9] * 3).thresholds_s == ()
    assert fit_states([]).thresholds_s == ()


def test_a_state_has_a_twentieth_of_the_values() -> None:
    assert fit_states([80e-9] * 19 + [400e-9]).names == (FAST, SLOW)
    assert fit_states([80e-9] * 20 + [400e-9]).names == (ALL,)


def test_strays_do_not_hide_two_speeds() -> None:
    rng = random.Random(5)
    canaries = [80e-9] * 60 + [400e-9] * 20 + [12e-6] * 3
    (threshold_s,) = fit_states([c * rng.lognormvariate(0, 0.05) for c in canaries]).thresholds_s
    assert 100e-9 < threshold_s < 350e-9


def test_three_speeds_and_a_few_strays() -> None:
    rng = random.Random(3)
    centres = [50e-9] * 40 + [120e-9] * 100 + [430e-9] * 60
    canaries = [centre * rng.lognormvariate(0, 0.08) for centre in centres]

    speeds = fit_states([*canaries, 22e-6])

    assert speeds.names == (FAST, MIDDLE, SLOW)
    assert [speeds.name(c, c) for c in (50e-9, 120e-9, 430e-9)] == [FAST, MIDDLE, SLOW]
    assert speeds.name(120e-9, 430e-9) == MIXED
