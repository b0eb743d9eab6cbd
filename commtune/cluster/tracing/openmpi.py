"""Traces of Open MPI (tested with 5.0.11), where OMPI_MCA_x sets the control variable x.

Open MPI ignores unknown names. Only loaded components have control variables: no pml_ucx_* with
pml ob1. Algorithms of coll/tuned are used only with coll_tuned_use_dynamic_rules, and no release
reports which algorithm ran. It shows in the traffic between ranks, which pml/monitoring counts
(5.0.11; Debian's 4.1.4 has no such counters).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from commtune.cluster.tracing.library import (
    TracedLibrary,
    TraceEvidence,
    TraceVerdict,
    holds_value,
)

_PREFIX = "OMPI_MCA_"
#: Frameworks of the MPI layer, whose variables only the library reads. Others may be read by the
#: launcher as well (hwloc_base_binding_policy).
_FRAMEWORKS = frozenset(
    {
        "allocator", "bml", "btl", "coll", "mpool", "mtl", "op", "osc", "part", "pml", "rcache",
        "smsc", "topo",
    }
)  # fmt: skip
_COUNTING = "OMPI_MCA_pml_monitoring_enable"
_RULES = "coll_tuned_use_dynamic_rules"
_TUNED = re.compile(r"coll_tuned_(\w+_algorithm(_\w+)?|dynamic_rules_filename)")
_SAID = re.compile(r"\[[^\]]*:\d+\]\s+(.*)")
_COMMUNICATOR = re.compile(r"coll:base:comm_select: new communicator: (\S+)")
_MODULE = re.compile(r"coll:base:comm_select: selecting\s+(\w+), priority\s+-?\d+, (\w+)")
_PML = re.compile(r"select: component (\w+) selected")


def _control_of(name: str) -> str | None:
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


def _is_missing(name: str, evidence: TraceEvidence) -> bool:
    del evidence
    framework, separator, _ = name.removeprefix(_PREFIX).partition("_")
    return bool(separator) and framework in _FRAMEWORKS


def _listen(evidence: TraceEvidence) -> TraceVerdict:
    lines = [found[1].strip() for found in map(_SAID.match, evidence.output.splitlines()) if found]
    pml = {found[1] for found in map(_PML.fullmatch, lines) if found}
    coll = _enabled(lines)
    unused: dict[str, str] = {}
    for name in evidence.configuration:
        if why := _without_rules(name, evidence) or _not_selected(name, pml, coll):
            unused[name] = why
    did = [f"pml {', '.join(sorted(pml))}"] if pml else []
    did += [f"coll {', '.join(sorted(coll))}"] if coll else []
    return TraceVerdict(unused=unused, replaced=_other_pml(evidence, pml), did=tuple(did))


def _enabled(lines: list[str]) -> frozenset[str]:
    """Returns the coll components in use on any communicator but MPI_COMM_SELF."""
    enabled: set[str] = set()
    communicator = ""
    for line in lines:
        if found := _COMMUNICATOR.match(line):
            communicator = found[1]
        elif (found := _MODULE.fullmatch(line)) and communicator != "MPI_COMM_SELF":
            enabled.update({found[1]} if found[2] == "Enabled" else ())
    # Lines of several ranks may be interleaved, so coll/self, for communicators of one rank, may
    # be among them. coll/monitoring is there for the trace, and passes all calls on.
    return frozenset(enabled - {"self", "monitoring"})


def _without_rules(name: str, evidence: TraceEvidence) -> str:
    control = name.removeprefix(_PREFIX)
    rules = evidence.controls.get(_RULES) or evidence.controls.get(_PREFIX + _RULES)
    if rules is None or not _TUNED.fullmatch(control) or holds_value("false", rules) is not True:
        return ""
    held = evidence.controls.get(name)
    return "" if held is None else f"it counts only under {_PREFIX}{_RULES}=1"


def _not_selected(name: str, pml: set[str], coll: frozenset[str]) -> str:
    """Returns why a component's variable has no effect; priorities always have one."""
    framework, _, rest = name.removeprefix(_PREFIX).partition("_")
    component, _, variable = rest.partition("_")
    selected: Mapping[str, frozenset[str]] = {"coll": coll, "pml": frozenset(pml)}
    known = _COMPONENTS.get(framework, frozenset())
    used = selected.get(framework, frozenset())
    if not used or component not in known or component in used or "priority" in variable:
        return ""
    return f"the component {component} is not in use: {framework} is {', '.join(sorted(used))}"


#: Components whose variables have no effect unless they are selected.
_COMPONENTS = {
    "coll": frozenset({"adapt", "basic", "han", "libnbc", "sm", "tuned", "ucc", "hcoll"}),
    "pml": frozenset({"cm", "ob1", "ucx"}),
}


def _other_pml(evidence: TraceEvidence, pml: set[str]) -> dict[str, tuple[str, str]]:
    asked = evidence.configuration.get(_PREFIX + "pml", "")
    if not re.fullmatch(r"\w+", asked) or not pml or pml == {asked}:
        return {}
    return {_PREFIX + "pml": (", ".join(sorted(pml)), "the component that was selected")}


def _too_risky(environment: Mapping[str, str]) -> frozenset[str]:
    """Avoids pml/monitoring without coll/monitoring: it crashes in MPI_Finalize (5.0.11)."""
    asked = environment.get(_PREFIX + "coll", "^")
    excluded, words = asked.startswith("^"), asked.removeprefix("^").split(",")
    return frozenset({_COUNTING} if ("monitoring" in words) is excluded else ())


OPENMPI = TracedLibrary(
    diagnosing={
        "OMPI_MCA_coll_base_verbose": "10",
        "OMPI_MCA_pml_base_verbose": "10",
        _COUNTING: "1",
    },
    too_risky=_too_risky,
    control_of=_control_of,
    further=(_RULES,),
    is_missing=_is_missing,
    listen=_listen,
    suffixes=True,
)
