"""Rules that NCCL takes through commtune's tuner plugin: what loads them, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commtune.app.profiles.rule_files import CampaignRules
from commtune.app.setup.installation import build_tuner
from commtune.cluster.tracing.nccl import lines_taken
from commtune.errors import UserError
from commtune.formatting import format_count
from commtune.kernels.tuner_build import OWN_PLUGIN, PLUGIN_VARIABLE, find_plugin_name
from commtune.model import Execution
from commtune.tuner.effective.settings import DID

_NAMED = f"export {PLUGIN_VARIABLE}=$(commtune build --tuner | head -n 1)"


def load_plugin(
    file: Path, rules: CampaignRules, environment: Mapping[str, str]
) -> dict[str, str]:
    """The variables that load the rules: with the user's plugin, or the one that is built here.

    Raises:
        UserError: the environment names another plugin, which NCCL would load in its place.
    """
    named = environment.get(PLUGIN_VARIABLE) or str(build_tuner())
    if (name := find_plugin_name(named, environment)) != OWN_PLUGIN:
        raise UserError(
            f"{file} is not used here: {PLUGIN_VARIABLE}={named} is the tuner plugin '{name}', "
            "and NCCL loads one only",
            hint=_NAMED,
        )
    return {**rules.load(file), PLUGIN_VARIABLE: named}


def refuse_untaken(file: Path, execution: Execution, library: str) -> None:
    """Refuses rules that the plugin did not say it took, by its log and NCCL's.

    Raises:
        UserError: NCCL did not load the plugin, or a rule was not taken; with what was said.
    """
    said = [line.removeprefix(DID) for line in execution.said if line.startswith(DID + "tuner")]
    lines = enumerate(file.read_text().splitlines(), 1)
    rules = {number for number, line in lines if line and not line.startswith("#")}
    if left := sorted(rules - lines_taken(execution)):
        raise UserError(
            f"{library} did not take {format_count(len(left), 'rule')} of {file}, in line "
            f"{', '.join(map(str, left))}"
            + "".join(f"\n  {line}" for line in said or ["it loaded no tuner plugin"]),
            hint=_NAMED,
        )
