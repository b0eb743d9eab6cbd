"""Job scripts for Slurm: templates, and a renderer under which no value can run."""

from commtune.slurm_templates.planning import Request, job_for, launch
from commtune.slurm_templates.quoting import Code
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block

__all__ = [
    "Code",
    "Job",
    "Request",
    "Step",
    "job_for",
    "launch",
    "render_allocation",
    "render_block",
]
