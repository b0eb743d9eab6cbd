"""Verifies a file of rules as deployed: that the library reads and obeys it, and its speedup.

First come untimed runs, in which the order of summation, Open MPI's message counts, and NCCL's log
show which algorithm ran at each size and on both sides of each border. Then come timed runs of the
file against the default.
"""

from __future__ import annotations

import math
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commtune.app.measure import benchmarking
from commtune.app.measure.verification import VerificationResult, verify_profile
from commtune.app.profiles.rule_files import (
    CampaignRules,
    find_library,
    read_rules,
    refuse_changed,
)
from commtune.app.setup.installation import build_tuner
from commtune.cluster.tracing.nccl import choices_by_size, lines_taken
from commtune.db.records import ProfileAnswer
from commtune.errors import UserError
from commtune.export.rules.table import Span
from commtune.formatting import format_count, format_size
from commtune.kernels.library_builds import OWN_PLUGIN, PLUGIN_VARIABLE, find_plugin_name
from commtune.model import (
    Backend,
    Configuration,
    Execution,
    JobScheduler,
    MpiInstallation,
    Profile,
    RunRequest,
    Timing,
    Verdict,
    Workload,
)
from commtune.spaces.catalogue.loading import variable_prefixes
from commtune.spaces.preset_choice import is_version_in
from commtune.tuner.effective.settings import DID, Told, is_same_algorithm, settings_of
from commtune.tuner.ports import Reporter
from commtune.wiring.space_fitting import library_words

#: Names of variables that force an algorithm for all sizes.
_FORCING = re.compile(r"(algorithm|_algo|_proto)$|^I_MPI_ADJUST_", flags=re.IGNORECASE)
#: The command that sets the plugin which applies the rules.
_NAMED = f"export {PLUGIN_VARIABLE}=$(commtune build --tuner | head -n 1)"


@dataclass(frozen=True)
class RuleProof:
    """The evidence of untimed runs that a library obeys a file of rules.

    All attributes are empty if the algorithms are not observable.

    Attributes:
        executed: sizes (bytes) at which the algorithm is as with the rule's variables, and not
            that of the default.
        alike: sizes with a rule whose algorithm is also that of the default.
        left: sizes without a rule, at which the algorithm is as without the file.
    """

    executed: tuple[int, ...] = ()
    alike: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


def verify_rules(
    file: Path,
    *,
    db: str | None = None,
    time_s: float = 30.0,
    mpi: str | None = None,
    reporter: Reporter,
    take_over: bool = False,
) -> tuple[RuleProof, VerificationResult]:
    """Verifies that the library obeys a file of rules, and measures it against the default.

    Args:
        time_s: wall time of the timed runs, seconds.
        mpi: the MPI; that of the campaign by default.

    Raises:
        UserError: the file differs from the export, or changes meanwhile, or the library doesn't
            use it; with the reason.
    """
    rules = read_rules(file, db=db, mpi=mpi)
    found = find_library(rules.stored, mpi)
    proof = prove_rules(file, rules, found)
    for line in _describe_proof(file, rules, found, proof):
        reporter.say(line)
    answer = _as_profile(rules, Configuration(deployed_settings(file, rules)))
    result = verify_profile(
        (answer, rules.stored),
        db=db,
        time_s=time_s,
        mpi=mpi,
        reporter=reporter,
        take_over=take_over,
        through=str(file),
    )
    # Each run reads the file again, so that it must not have changed meanwhile.
    refuse_changed(file, rules)
    return proof, result


def prove_rules(file: Path, rules: CampaignRules, mpi: MpiInstallation) -> RuleProof:
    """Checks by untimed runs with the file that the library obeys it.

    Raises:
        UserError: the library doesn't use the file, or not all of it; with the reason.
        EnvironmentFault: a run did not finish.
    """
    if kind := JobScheduler.find_in(rules.stored.what):
        raise UserError(
            f"{file} is for a campaign on {kind.label}: its rules can't be traced from here",
            hint="tune and verify without it, inside of an allocation",
        )
    load = deployed_settings(file, rules)
    _refuse_other_version(file, rules, mpi)
    _refuse_overridden(file, rules, load, os.environ)
    return _prove(file, rules, load, mpi)


def deployed_settings(file: Path, rules: CampaignRules) -> dict[str, str]:
    """Returns the variables that load a file of rules here.

    Raises:
        UserError: NCCL would load another plugin.
    """
    if rules.format.library == "nccl":
        return _load_plugin(file, rules, os.environ)
    return rules.load(file)


def _refuse_other_version(file: Path, rules: CampaignRules, mpi: MpiInstallation) -> None:
    library, _, version = _library_words(rules, mpi).partition(" ")
    if library != rules.format.library or not is_version_in(version, rules.format.versions):
        raise UserError(
            f"{file} is for {rules.format.library} {rules.format.versions}; this is "
            f"{library} {version}, which does not read it",
            hint="name another MPI: 'commtune mpi list' shows what there is",
        )


def _refuse_overridden(
    file: Path, rules: CampaignRules, load: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Refuses a file that variables in the user's environment override."""
    for name, value in load.items():
        if (own := environment.get(name, value)) != value:
            raise UserError(
                f"{file} is not used here: your environment sets {name}={own}",
                hint=f"export {name}={value}",
            )
    forcing = [
        name
        for operation in rules.table.operations
        for name in sorted(rules.format.expressible(operation) - load.keys())
        if name in environment and _FORCING.search(name)
    ]
    if forcing:
        raise UserError(
            f"{file} is not used here: your environment sets {', '.join(forcing)}, which "
            "chooses for all sizes",
            hint=f"unset {' '.join(forcing)}",
        )


def _prove(
    file: Path, rules: CampaignRules, load: Mapping[str, str], mpi: MpiInstallation
) -> RuleProof:
    workload = Workload.of_plain(rules.stored.what["workload"])
    spans = rules.spans(str(workload.operation))
    expected = _sizes_of(spans, rules.table.rules[0].bytes_low, workload)
    switches = rules.format.switches
    process = {n: v for n, v in rules.export.environment.items() if n not in switches}
    deployed = Configuration({**_user_settings(rules, load), **load})
    asked = replace(workload, sizes=tuple(sorted(expected)), then=())
    request = RunRequest(uuid.uuid4().hex, deployed, asked, Timing())
    (own,) = benchmarking.trace_each(request, [deployed], mpi)
    library = _library_words(rules, mpi)
    _refuse_unheld(file, load, own, library)
    if rules.format.library == "nccl":
        _refuse_untaken(file, own, library)
    forced = [Configuration({**process, **span.settings}) for span in spans]
    others = list(dict.fromkeys([Configuration(process), *forced]))
    seen = dict(zip(others, benchmarking.trace_each(request, others, mpi), strict=True))
    shown_by = {c: _shown(execution, rules, asked) for c, execution in seen.items()}
    shown_by_file = _shown(own, rules, asked)
    found: dict[str, list[int]] = {kind: [] for kind in ("executed", "alike", "left", "wrong")}
    for size, settings in sorted(expected.items()):
        shown = shown_by_file.get(size, "")
        rule = shown_by[Configuration({**process, **settings})].get(size, "")
        is_default = is_same_algorithm(shown, shown_by[Configuration(process)].get(size, ""))
        what = "left" if not settings else "alike" if is_default else "executed"
        is_rule = is_same_algorithm(shown, rule)
        if is_rule is not None:
            found[what if is_rule else "wrong"].append(size)
    if wrong := found.pop("wrong"):
        raise UserError(
            f"{library} does not do what {file} says at {_listed(wrong)}: its "
            "sums, messages or log are others than with the rule's variables",
            hint="something else chooses algorithms there; commtune doctor shows what is set",
        )
    return RuleProof(**{what: tuple(sizes) for what, sizes in found.items()})


def _shown(execution: Execution, rules: CampaignRules, asked: Workload) -> Mapping[int, str]:
    """Returns what identifies the algorithm, by size: logs of NCCL and RCCL, else fingerprints."""
    if rules.format.library not in ("nccl", "rccl"):
        return execution.fingerprints
    chosen = choices_by_size(execution, asked.ranks)
    unit = asked.bytes_of_one_more
    sent = {size: max(unit, size // unit * unit) for size in asked.sizes}
    return {size: f"+{chosen[n]}" for size, n in sent.items() if n in chosen}


def _library_words(rules: CampaignRules, mpi: MpiInstallation) -> str:
    """Returns name and version of the library: ``openmpi 5.0.11``, ``nccl 2.28.9``."""
    backend = str(rules.stored.what["workload"]["backend"])
    if backend == Backend.XCCL:
        return library_words(backend, mpi)
    return f"{mpi.flavour.library} {mpi.version}"


def _user_settings(rules: CampaignRules, load: Mapping[str, str]) -> dict[str, str]:
    """Returns the library's variables in the user's environment, of which runs inherit few."""
    prefixes = variable_prefixes(rules.format.library)
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(prefixes) and name not in load and not name.startswith("NCCL_DEBUG")
    }


def _sizes_of(
    spans: tuple[Span, ...], smallest: int, workload: Workload
) -> dict[int, Configuration]:
    """Returns the settings at the campaign's sizes (bytes) and on both sides of all borders."""
    unit = workload.bytes_of_one_more
    ends = [span.last // unit * unit for span in spans if span.last is not None]
    starts = [-(-span.first // unit) * unit for span in spans]
    return {
        size: span.settings
        for size in {*workload.sizes, *ends, *starts}
        if size >= min(unit, smallest)
        for span in spans
        if span.first
        <= max(unit, size // unit * unit)
        <= (math.inf if span.last is None else span.last)
    }


def _refuse_unheld(
    file: Path, load: Mapping[str, str], execution: Execution, library: str
) -> None:
    for name, setting in settings_of(execution).items():
        if name in load and setting.told in (Told.REPLACED, Told.ABSENT, Told.UNUSED):
            absent = setting.told is Told.ABSENT
            why = " (what would read it is not loaded)" if absent else ""
            raise UserError(
                f"{library} does not use {file}: {setting.line()}{why}",
                hint="look for the cause in your environment, and in the library's own files",
            )


def _describe_proof(
    file: Path, rules: CampaignRules, mpi: MpiInstallation, proof: RuleProof
) -> Iterator[str]:
    """Yields a line for each rule, with the sizes at which its algorithm was observed."""
    library = _library_words(rules, mpi)
    operation = str(rules.stored.what["workload"]["operation"])
    if proof == RuleProof():
        yield (
            f"{library} holds what loads {file}; which algorithm of {operation} it took is not "
            "seen: sums of 3 ranks or more show it, and messages where Open MPI counts them"
        )
    else:
        yield f"{library}, {operation} through {file}, rule by rule:"
    for span in rules.spans(operation):
        last = math.inf if span.last is None else span.last
        seen = {
            "executed": proof.executed,
            "as by default too": proof.alike,
            "the library's own choice": proof.left,
        }
        inside = {
            what: [n for n in sizes if span.first <= n <= last] for what, sizes in seen.items()
        }
        said = [f"{what} at {_listed(sizes)}" for what, sizes in inside.items() if sizes]
        yield (
            f"  from {format_size(span.first)}, {span.settings}: {'; '.join(said) or 'not seen'}"
        )


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(format_size, sizes))


def _as_profile(rules: CampaignRules, load: Configuration) -> ProfileAnswer:
    """Returns all rules as one profile, whose configuration loads the file."""
    profiles = [answer.profile for answer in rules.answers]
    first = rules.answers[0]
    is_likely = all(one.verdict is Verdict.LIKELY for one in profiles)
    whole: Profile = replace(
        first.profile,
        name=rules.format.name,
        bytes_low=min(one.bytes_low for one in profiles),
        bytes_high=max(one.bytes_high for one in profiles),
        configuration=load,
        verdict=Verdict.LIKELY if is_likely else Verdict.FASTER,
        points=tuple(point for one in profiles for point in one.points_inside),
    )
    return replace(first, profile=whole)


def _load_plugin(
    file: Path, rules: CampaignRules, environment: Mapping[str, str]
) -> dict[str, str]:
    """Returns the variables that load the rules, by the user's tuner plugin or a new build.

    Raises:
        UserError: the environment names another plugin, which NCCL would load instead.
    """
    named = environment.get(PLUGIN_VARIABLE) or str(build_tuner())
    if (name := find_plugin_name(named, environment)) != OWN_PLUGIN:
        raise UserError(
            f"{file} is not used here: {PLUGIN_VARIABLE}={named} is the tuner plugin '{name}', "
            "and NCCL loads one only",
            hint=_NAMED,
        )
    return {**rules.load(file), PLUGIN_VARIABLE: named}


def _refuse_untaken(file: Path, execution: Execution, library: str) -> None:
    """Refuses rules that the logs of NCCL and the plugin don't report as applied.

    Raises:
        UserError: NCCL did not load the plugin, or a rule was not applied; with the log lines.
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
