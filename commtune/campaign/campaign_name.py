"""Checks names of campaigns."""

from __future__ import annotations

import re

from commtune.documents.nearest import quote_value
from commtune.errors import InvalidValue


def check_campaign_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise InvalidValue(
            f"{quote_value(name)} can't name a campaign",
            hint="use letters, digits and . _ -, 64 at most; begin with a letter or digit",
        )
    return name
