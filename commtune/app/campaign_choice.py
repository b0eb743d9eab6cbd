"""Which campaign is meant where nobody names one."""

from __future__ import annotations

from commtune.db.connection.location import database_url
from commtune.db.connection.reader import open_for_reading
from commtune.errors import NoAnswer, UserError

#: Names that a hint lists.
_SHOWN = 6


def choose_campaign(named: str | None, db: str | None) -> str:
    """The campaign that is named, or the only one there is.

    Raises:
        UserError: there are several; the hint names the newest.
        NoAnswer: there is none yet.
        DatabaseFault: the database can't be read.
    """
    if named is not None:
        return named
    with open_for_reading(database_url(db)) as rows:
        names = [row["name"] for row in rows("SELECT name FROM campaigns ORDER BY id DESC", {})]
    if not names:
        raise NoAnswer("there is no campaign yet", hint="commtune tune runs one")
    if len(names) > 1:
        shown = ", ".join(names[:_SHOWN])
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise UserError(f"there are {len(names)} campaigns", hint=f"name one: {shown}{more}")
    return str(names[0])
