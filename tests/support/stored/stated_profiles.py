"""A profile as a campaign stated it, for verification to be held against."""

from __future__ import annotations

from commtune.model import Configuration, Interval, PointEvidence, Profile, Verdict

SIZES = (8, 65536, 1048576)
TUNED = Configuration({"BUFFER": "65536"})


def point(size: int, low: float, high: float, *, speed: str = "all", share: float = 1.0,
          verdict: Verdict = Verdict.FASTER) -> PointEvidence:  # fmt: skip
    gain = Interval((low * high) ** 0.5, low, high, 20)
    return PointEvidence("allreduce", size, speed, 1e-5, 1e-5 / gain.ratio, gain, verdict, share)


def profile(*points: PointEvidence, configuration: Configuration = TUNED) -> Profile:
    """One over all sizes."""
    return Profile(
        name="all-sizes",
        operation="allreduce",
        backend="mpi-host",
        ranks=2,
        nodes=1,
        bytes_low=SIZES[0],
        bytes_high=SIZES[-1],
        configuration=configuration,
        verdict=Verdict.DEFAULT if configuration.is_default else Verdict.FASTER,
        points=points,
    )


#: Stated: 1.3x at large sizes, no harm at 8 B.
PROFILE = profile(
    point(8, 0.97, 1.03, verdict=Verdict.DEFAULT),
    point(65536, 1.25, 1.35),
    point(1048576, 1.25, 1.35),
)
