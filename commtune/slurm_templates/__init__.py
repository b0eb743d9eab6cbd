"""Job scripts for Slurm: templates, and a renderer under which no value can run."""

from commtune.slurm_templates.beside import BackgroundCommand
from commtune.slurm_templates.launching import launch_words
from commtune.slurm_templates.planning import job_for
from commtune.slurm_templates.quoting import ShellCode
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block
from commtune.slurm_templates.wish import InvalidRequest, JobRequest, Placement

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
