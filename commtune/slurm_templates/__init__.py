"""Job scripts for Slurm: templates, and a renderer under which no value can run."""

from commtune.slurm_templates.background_command import BackgroundCommand
from commtune.slurm_templates.job_planning import job_for
from commtune.slurm_templates.job_request import InvalidRequest, JobRequest, Placement
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.quoting import ShellCode
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block

__all__ = [
    "BackgroundCommand",
    "InvalidRequest",
    "Job",
    "JobRequest",
    "Placement",
    "ShellCode",
    "Step",
    "job_for",
    "launch_words",
    "render_allocation",
    "render_block",
]
