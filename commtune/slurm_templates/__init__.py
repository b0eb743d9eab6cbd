"""Job scripts for Slurm: templates, and a renderer under which no value can run."""

from commtune.slurm_templates.beside import Beside
from commtune.slurm_templates.launching import launch
from commtune.slurm_templates.planning import job_for
from commtune.slurm_templates.quoting import Code
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block
from commtune.slurm_templates.wish import Placement, Wish, WishRefused

__all__ = [
    "Beside",
    "Code",
    "Job",
    "Placement",
    "Step",
    "Wish",
    "WishRefused",
    "job_for",
    "launch",
    "render_allocation",
    "render_block",
]
