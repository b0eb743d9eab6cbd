"""Builds the objects from settings: the only package that knows all adapters."""

from commtune.wiring.campaigns import LOOK_AT, replay, tune
from commtune.wiring.controlling import controlled, database, held
from commtune.wiring.fitting import (
    check_library,
    fitted,
    here,
    is_version_in,
    library_words,
    preset_for,
)
from commtune.wiring.programs import (
    bench,
    build_for,
    by_hand,
    find,
    prepare_benchmark,
    prepare_pinned,
    program_for,
    watching,
)
from commtune.wiring.recognizing import system_hint
from commtune.wiring.slurm import (
    cancel,
    example_script,
    jobs_now,
    more_on_slurm,
    slurm_campaign,
    steps_on_slurm,
    submit,
    test_script,
)
from commtune.wiring.versions import begun_with, versions_again

__all__ = [
    "LOOK_AT",
    "begun_with",
    "bench",
    "build_for",
    "by_hand",
    "cancel",
    "check_library",
    "controlled",
    "database",
    "example_script",
    "find",
    "fitted",
    "held",
    "here",
    "is_version_in",
    "jobs_now",
    "library_words",
    "more_on_slurm",
    "prepare_benchmark",
    "prepare_pinned",
    "preset_for",
    "program_for",
    "replay",
    "slurm_campaign",
    "steps_on_slurm",
    "submit",
    "system_hint",
    "test_script",
    "tune",
    "versions_again",
    "watching",
]
