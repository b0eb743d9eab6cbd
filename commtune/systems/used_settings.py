"""Which settings our sources used on a system: its site's pages, studies, users."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from commtune.systems.findings import all_findings
from commtune.systems.reference_settings import all_reference_settings

#: Kinds of reference settings by which a site itself tells its users what to set.
_BY_THE_SITE = ("documented", "injected")


@cache
def used_settings(system: str, library: str) -> Mapping[tuple[str, str], bool]:
    """Variables with a value that a source names for a system and a library.

    Returns:
        For each, whether the site documents it: then it needs nobody's consent there.
    """
    found: dict[tuple[str, str], bool] = {}
    for named in all_findings():
        finding = named.finding
        if system in finding.systems and library in finding.libraries:
            for setting in (finding.setting, *finding.also):
                found |= dict.fromkeys(setting.items(), False)
    for one in all_reference_settings().values():
        if system in one.entry.systems and library in one.entry.libraries:
            by_site = one.entry.fit and one.entry.kind in _BY_THE_SITE
            for item in one.settings.items():
                found[item] = by_site or found.get(item, False)
    return found
