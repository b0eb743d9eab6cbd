"""The site of a campaign on Slurm; where it doesn't answer, said in words of the campaign."""

from __future__ import annotations

from collections.abc import Mapping

from commtune.campaign.file import CampaignSpec
from commtune.cluster.slurm.queries import SlurmFault
from commtune.cluster.slurm.site import Site, describe_site
from commtune.errors import EnvironmentFault, MissingComponent


def site_of(spec: CampaignSpec, environment: Mapping[str, str]) -> Site:
    """What Slurm says of where we are.

    Raises:
        EnvironmentFault: there is no Slurm here, or it doesn't answer.
    """
    try:
        return describe_site(environment)
    except (MissingComponent, SlurmFault) as error:
        if spec.system is None:
            raise
        is_there = isinstance(error, SlurmFault)
        state = "does not answer here" if is_there else "is not on this machine"
        ask = " ('scontrol ping' asks whether it is there)" if is_there else ""
        keys = "'system' and 'slurm'" if _names_slurm(spec) else "'system'"
        raise EnvironmentFault(
            f"campaigns on {spec.system.name} go through Slurm, and Slurm {state}",
            hint=f"start it on a login node of {spec.system.name}{ask};\n"
            f"to measure on this machine instead, leave {keys} out of the campaign file",
            transient=error.transient,
        ) from error


def _names_slurm(spec: CampaignSpec) -> bool:
    """Whether the file has a key `slurm` of its own; a system alone brings Slurm as well."""
    return spec.slurm_line is not None
