"""Builds the objects from settings: the only package that knows all adapters."""

from commtune.wiring.control import controlled_campaign, held_campaign, opened_database
from commtune.wiring.fitting import (
    check_library,
    fit_campaign,
    fit_to_environment,
    library_words,
    preset_begun_with,
    preset_for,
)
from commtune.wiring.programs import (
    build_for,
    by_hand,
    find_named_mpi,
    prepare_benchmark,
    prepare_pinned,
    program_for,
    run_once,
    watch_variables,
)
from commtune.wiring.slurm import (
    cancel_campaign,
    example_script,
    jobs_now,
    more_on_slurm,
    slurm_campaign,
    steps_on_slurm,
    submit_campaign,
    system_hint,
    test_script,
)
from commtune.wiring.versions import begun_with, versions_again

__all__ = [
    "begun_with",
    "build_for",
    "by_hand",
    "cancel_campaign",
    "check_library",
    "controlled_campaign",
    "example_script",
    "find_named_mpi",
    "fit_campaign",
    "fit_to_environment",
    "held_campaign",
    "jobs_now",
    "library_words",
    "more_on_slurm",
    "opened_database",
    "prepare_benchmark",
    "prepare_pinned",
    "preset_begun_with",
    "preset_for",
    "program_for",
    "run_once",
    "slurm_campaign",
    "steps_on_slurm",
    "submit_campaign",
    "system_hint",
    "test_script",
    "versions_again",
    "watch_variables",
]
