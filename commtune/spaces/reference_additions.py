"""Adds the variables and values of reference settings to a campaign's space.

Only values that a catalogue says are legal are added; the constraints of the space apply to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from commtune.documents.quantities import parse_bytes, whole_number
from commtune.documents.yaml_document import Document, Place
from commtune.errors import DocumentError, InvalidValue, SpaceError
from commtune.spaces.added_values import add_value
from commtune.spaces.building import as_value
from commtune.spaces.catalogue.loading import KnownVariable, add_variables, list_libraries, look_up
from commtune.spaces.catalogue.words import Danger, Level, Role, Scope
from commtune.spaces.catalogue_facts import add_conditions, complete_document, declare_values
from commtune.spaces.customizing import customize_space, in_order
from commtune.spaces.parameter import Kind, Parameter, Restricted, Risk
from commtune.spaces.space import Space

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Variable

#: The libraries below each library, by which it sends its messages: their variables affect it.
_BELOW = {
    "nccl": ("aws-ofi-nccl", "libfabric"),
    "rccl": ("aws-ofi-nccl", "libfabric"),
    "mpich": ("libfabric", "ucx"),
    "cray-mpich": ("libfabric",),
    "intel-mpi": ("libfabric",),
    "openmpi": ("ucx", "ucc", "libfabric"),
    "oneccl": ("libfabric",),
}
_NOWHERE = Place(Document(None, error_class=SpaceError))


@dataclass(frozen=True)
class LeftOut:
    """The reason why a recommended setting is not tried.

    Attributes:
        opt_in: the ``opt_in`` entry that the campaign would need; empty for other reasons.
        matters: whether the setting would have an effect on a run.
    """

    why: str
    opt_in: str = ""
    matters: bool = True

    @property
    def words(self) -> str:
        """The reason as users read it."""
        return f"{self.why}, opt_in: [{self.opt_in}]" if self.opt_in else self.why


@dataclass(frozen=True)
class ExtendedSpace:
    """A space that was extended for reference settings.

    Attributes:
        added: the variables with values that were added.
        reasons: the reason for each variable with a value that was not added.
        meant: the value that the library reads, by variable and legacy spelling in the settings.
    """

    space: Space
    added: tuple[tuple[str, str], ...] = ()
    reasons: Mapping[tuple[str, str], LeftOut] = field(default_factory=dict)
    meant: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def words(self, final: Space) -> str:
        """Returns a note for users on additions that are in the final space; empty for none."""
        kept = [f"{name}={value}" for name, value in self.added if _has(final, name, value)]
        return (
            f"note: for its reference settings, the search also has {', '.join(kept)}"
            if kept
            else ""
        )


def add_reference_settings(
    space: Space,
    sets: Iterable[Mapping[str, str]],
    barred: Collection[str],
    *,
    one_node: bool,
) -> ExtendedSpace:
    """Extends the space by the values of reference settings that the catalogues say are legal.

    Args:
        sets: reference settings: variables with values.
        barred: variables that must not be searched here.
        one_node: whether the job has one node, and so doesn't use the network between nodes.
    """
    written = dict.fromkeys(item for one in sets for item in one.items())
    facts = _facts(space.library) if any(n not in barred for n, _ in written) else {}
    meant = _meant(written, facts)
    additions = _Additions(space, facts, one_node=one_node)
    for name, value in dict.fromkeys((n, meant.get((n, v), v)) for n, v in written):
        if name not in barred and name not in space.pinned:
            additions.add(name, value)
    additions.add_new_parameters()
    added = tuple(one for one in additions.added if one not in additions.reasons)
    return ExtendedSpace(additions.space, added, additions.reasons, meant)


class _Additions:
    """A space to which settings are added one by one, with reasons for those left out."""

    def __init__(
        self, space: Space, facts: Mapping[str, KnownVariable], *, one_node: bool
    ) -> None:
        self.space = space
        self.added: list[tuple[str, str]] = []
        self.reasons: dict[tuple[str, str], LeftOut] = {}
        self._facts = facts
        self._one_node = one_node
        self._owners = {v: p for p in space.declared.values() for v in p.variables}
        self._new: dict[str, list[str]] = {}

    def add(self, name: str, value: str) -> None:
        """Adds a value of a variable; a new variable is only noted for ``add_new_parameters``."""
        owner, fact = self._owners.get(name), _fact(self._facts, name)
        if owner is not None and self._has_or_refuses(owner, value):
            return
        if fact is None:
            self.reasons[name, value] = _unread(name, self.space.library)
        elif reason := self._refusal(value, fact, is_new=owner is None):
            self.reasons[name, value] = reason
        elif owner is None:
            self._new.setdefault(name, []).append(value)
        else:
            declared = self.space.declared[owner.name]
            self.space = _with_value(self.space, declared, fact.variable, value)
            self.added.append((name, value))

    def _has_or_refuses(self, owner: Parameter, value: str) -> bool:
        # A choice of a group sets several variables, so a value of one of them can't be added.
        if owner.kind is Kind.GROUP or owner.name in self.space.retired:
            return True
        return as_value(self.space.declared[owner.name], value) is not None

    def _refusal(self, value: str, fact: KnownVariable, *, is_new: bool) -> LeftOut | None:
        if is_new:
            if unfit := _unfit(fact.variable, one_node=self._one_node):
                return unfit
            if fact.name in self._owners:
                return LeftOut(f"another name of {fact.name}, which the space has")
        illegal = _illegal(fact, value)
        return LeftOut(illegal) if illegal else None

    def add_new_parameters(self) -> None:
        """Adds the variables that the space lacks, with their conditions."""
        for name, values in self._new.items():
            try:
                written = _written(name, values, _fact(self._facts, name))
                self.space = customize_space(self.space, extend=[written])
                self.added += [(name, value) for value in values]
            except DocumentError as error:
                self._leave_out(name, values, error)
        # All are added before conditions are set, since conditions may name any of them, even one
        # that is removed below because it can never be active.
        whole = self.space
        for name in self._new:
            if name in whole.declared:
                self._set_conditions(whole.declared[name], whole)

    def _set_conditions(self, parameter: Parameter, whole: Space) -> None:
        """Sets the catalogue's condition; removes a parameter that is never active."""
        try:
            changed = add_conditions(parameter, self._facts, whole, _NOWHERE)
        except DocumentError as error:
            self._leave_out(parameter.name, parameter.settings, error)
            changed = replace(parameter, values=())
        self.space = _replaced(self.space, changed)

    def _leave_out(self, name: str, values: Iterable[str], error: DocumentError) -> None:
        self.reasons |= {(name, value): LeftOut(error.message) for value in values}


def _facts(library: str) -> dict[str, KnownVariable]:
    """Reads the facts on variables of a library and of those below it from the catalogues."""
    facts: dict[str, KnownVariable] = {}
    for one in (library, *_BELOW.get(library, ())):
        if one in list_libraries():
            add_variables(facts, one)
    return facts


def _meant(
    settings: Iterable[tuple[str, str]], facts: Mapping[str, KnownVariable]
) -> dict[tuple[str, str], str]:
    """Returns the values that the library reads legacy spellings as; a space has only those."""
    known = {item: _fact(facts, item[0]) for item in settings}
    return {
        (name, value): fact.variable.read_as[value]
        for (name, value), fact in known.items()
        if fact is not None and value in fact.variable.read_as
    }


def _fact(facts: Mapping[str, KnownVariable], name: str) -> KnownVariable | None:
    """Finds the facts on a variable, by its name or by an alias."""
    by_alias = (fact for fact in facts.values() if name in fact.variable.aliases)
    return facts.get(name) or next(by_alias, None)


def unread_here(space: Space, name: str) -> LeftOut | None:
    """Returns the reason if a variable has no effect since only other libraries read it."""
    declared = space.declared
    if name in {*space.pinned, *declared} or any(name in p.variables for p in declared.values()):
        return None
    known = _fact(_facts(space.library), name) is not None
    reason = None if known else _unread(name, space.library)
    return reason if reason is not None and not reason.matters else None


def _unread(name: str, library: str) -> LeftOut:
    answer = look_up(name)
    if library in {catalogue.library for catalogue in answer.undescribed}:
        return LeftOut(f"the catalogue of {library} does not describe it")
    readers = [entry.catalogue.library for entry in answer.known]
    if readers:
        read = f"read by {' and '.join(readers)}, not by {library}"
        return LeftOut(f"without effect here: {read}", matters=False)
    return LeftOut("in no catalogue, so its legal values are unknown")


def _unfit(variable: Variable, *, one_node: bool) -> LeftOut | None:
    """Returns the reason if a variable that the space lacks isn't added, whatever its value."""
    if Danger.HARM_TO_OTHERS in variable.dangers or variable.level is Level.FORBIDDEN:
        return LeftOut("may harm others on the machine; only your own `extend` brings it in")
    if variable.role is not Role.TUNE:
        return LeftOut(f"not searched ({variable.role}: {variable.role.meaning})")
    if one_node and variable.scope is Scope.BETWEEN:
        why = "without effect here: it acts between nodes, and this campaign is on one"
        return LeftOut(why, matters=False)
    return None


def _illegal(fact: KnownVariable, value: str) -> str:
    """Returns why a value isn't legal by the catalogue; empty if it is."""
    variable, limits = fact.variable, fact.variable.range
    special = limits.also if limits is not None else []
    if value in (*variable.values, *variable.restricted, *special):
        return ""
    if variable.type not in ("integer", "bytes"):
        return "no value that the catalogue names"
    number = _number(fact, value)
    if number is None:
        return f"not a number as {fact.catalogue.title} reads it"
    if limits is None:
        return "no value that the catalogue names" if variable.values else ""
    least, greatest = _parsed(limits.least), _parsed(limits.greatest)
    if not least <= number <= greatest:
        return f"outside of what the catalogue says: {limits.least} to {limits.greatest}"
    if limits.powers_of_two and number.bit_count() != 1:
        return f"{fact.catalogue.title} takes powers of two only"
    return ""


def _parsed(text: str) -> int:
    """Parses a whole number, or a size in bytes."""
    number = whole_number(text)
    return parse_bytes(text) if number is None else number


def _number(fact: KnownVariable, value: str) -> int | None:
    takes_suffixes = fact.variable.type == "bytes" and fact.catalogue.suffixes
    if whole_number(value) is None and not takes_suffixes:
        return None
    try:
        return _parsed(value)
    except InvalidValue:
        return None


def _written(name: str, values: list[str], fact: KnownVariable | None) -> Mapping[str, object]:
    """Returns the entry of a space file for a parameter with these values."""
    written = {"name": name, **declare_values(values)}
    assert fact is not None, name
    if set(values) <= set(fact.variable.restricted):
        written |= {"opt_in": True, "restricted": []}
    data = Document({"parameters": [written]}, error_class=SpaceError)
    filled: Mapping[str, object] = complete_document(data, {name: fact})["parameters"][0]
    return filled


def _with_value(space: Space, parameter: Parameter, variable: Variable, value: str) -> Space:
    number = whole_number(value)
    if number is None and parameter.kind is Kind.BYTES:
        number = parse_bytes(value)
    # A recommendation by others is not an opt-in of this site.
    why = variable.caution or variable.meaning
    careful = (
        Restricted(value, (Risk.WRONG_RESULT,), why) if value in variable.restricted else None
    )
    return add_value(space, parameter, value, number, careful)


def _replaced(space: Space, parameter: Parameter) -> Space:
    """Returns the space with a parameter replaced, or removed if it has no values."""
    kept = [parameter] if parameter.values else []
    if parameter.name in space.left_out:
        others = {n: p for n, p in space.left_out.items() if n != parameter.name}
        return replace(space, left_out={**others, **{p.name: p for p in kept}})
    changed = [
        one for p in space.parameters for one in (kept if p.name == parameter.name else [p])
    ]
    return replace(space, parameters=in_order(changed, _NOWHERE))


def _has(space: Space, name: str, value: str) -> bool:
    return any(
        parameter.environment(v) == {name: value}
        for parameter in space.parameters
        for v in parameter.values
    )
