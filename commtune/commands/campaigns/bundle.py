"""``commtune bundle``: campaigns in one file, for another site."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commtune import formatting as text
from commtune.commands.options import DbOption, JsonOption, print_json
from commtune.errors import UserError

#: Columns of the list, beside the name.
_SHOWN = ("operation", "system", "stack", "trials", "runs", "profiles")
_File = Annotated[Path, typer.Argument(help="the bundle")]
_Signers = Annotated[
    Path | None,
    typer.Option(
        "--allowed-signers",
        help="who may sign: lines of a name and a public key, as ssh-keygen reads them",
    ),
]


def bundle_create_command(
    file: Annotated[Path, typer.Argument(help="the bundle, a file that is not there yet")],
    campaigns: Annotated[
        list[str] | None, typer.Argument(help="campaigns [all that were measured here]")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="sign with this key of OpenSSH (ssh-keygen -Y sign)")
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="with names of hosts and users, and ends of output")
    ] = False,
    db: DbOption = None,
) -> None:
    """Write campaigns with all their evidence to one file, for another site."""
    from commtune.app.campaigns.sharing import create_bundle

    made = create_bundle(file, campaigns or (), key=sign, names=names, db=db)
    kind = "signed" if sign else "not signed"
    print(f"wrote {file}: {text.format_count(len(made.campaigns), 'campaign')}, {kind}")
    if not names:
        print("hosts and users have pseudonyms; to look before you send it: zcat FILE")


def bundle_inspect_command(
    file: _File, allowed_signers: _Signers = None, json_output: JsonOption = False
) -> None:
    """Check a bundle as a whole and list what is in it; nothing is stored."""
    from commtune.app.campaigns.sharing import read_bundle

    found = read_bundle(file, allowed_signers)
    told = {name: value for name, value in vars(found).items() if name != "packed"}
    if json_output:
        campaigns = [asdict(one) for one in found.campaigns]
        print_json({**told, "campaigns": campaigns})
        return
    signature = (
        "signed, by whom was not checked (--allowed-signers)" if found.signed else "unsigned"
    )
    print(f"{file}: {f'signed by {found.signer}' if found.signer else signature}")
    made, names = text.format_day(found.created), _names(found.names)
    print(f"made {made} by commtune {found.commtune}, {names}\n")
    rows = [
        {
            "campaign": one.name + (" (simulated)" if one.simulated else ""),
            **{name: str(getattr(one, name)) for name in _SHOWN},
        }
        for one in found.campaigns
    ]
    print(text.format_rows(rows, right="trials,runs,profiles"))


def _names(there: bool) -> str:
    return "with names of hosts and users" if there else "with pseudonyms for hosts and users"


def bundle_merge_command(
    file: _File,
    allowed_signers: _Signers = None,
    unsigned: Annotated[
        str | None, typer.Option(help="name of the site that it is from; no signature is checked")
    ] = None,
    db: DbOption = None,
) -> None:
    """Store a bundle's campaigns as those of the site that signed it: all of them, or none.

    No answer of 'commtune best' rests on them; new campaigns try their best profiles first.
    """
    from commtune.app.campaigns.sharing import merge_bundle, read_bundle

    if (allowed_signers is None) == (unsigned is None):
        raise UserError(
            "name who may sign, or whose the bundle is",
            hint="--allowed-signers FILE, or --unsigned SITE",
        )
    found = read_bundle(file, allowed_signers)
    say = partial(print, file=sys.stderr, flush=True)
    for name, is_new in merge_bundle(found, unsigned or found.signer, db, say=say):
        print(f"stored {name}" if is_new else f"{name} is already there")
