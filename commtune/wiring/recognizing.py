"""A word to those whose campaign could name the system that it runs on."""

from __future__ import annotations

import os

from commtune.cluster.machine.inventory import collect_clues
from commtune.systems import list_systems, load_system
from commtune.systems.detection.recognition import recognize_system, surest_matches
from commtune.wiring.on_slurm import OnSlurm


def system_hint(on: OnSlurm) -> str:
    """That a description of this system comes with commtune; empty where the campaign names one.

    Empty as well in a job of ``commtune submit``, which said it, and where several would fit.
    """
    if on.spec.system is not None or on.key:
        return ""
    known = [load_system(name) for name in list_systems()]
    found = surest_matches(recognize_system(collect_clues(os.environ, on.site.name), known))
    if len(found) != 1 or found[0].system.retired:
        return ""
    name, why = found[0].system.name, found[0].by[0]
    return f"note: this is {name} ({why}); 'system: {name}' makes jobs ask for what fits it"
