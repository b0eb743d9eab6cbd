"""Writes campaigns into a bundle, a file for another site, and reads and merges bundles.

A bundle is gzip over lines of JSON: a header, then the rows of each campaign (``db.bundle``).
If signed, an OpenSSH signature follows. Nothing in a bundle is executed.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from commtune import __version__
from commtune.app.campaigns import signatures
from commtune.app.campaigns.pseudonyms import Pseudonyms
from commtune.db.bundle.checking import BadRow, RowChecker, check_plain
from commtune.db.bundle.merging import Digest, merge_rows
from commtune.db.bundle.rows import Row, read_campaign, to_line
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import open_database, open_readable
from commtune.db.connection.location import SCHEMA, wait_s
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.summaries import list_summaries
from commtune.documents.files import read_file, replaced_file
from commtune.errors import NoAnswer, UserError
from commtune.formatting import format_size
from commtune.paths import exists

_FORMAT = "commtune-bundle"
_SIGNED = b"-----BEGIN SSH SIGNATURE-----"
_SIGNATURE_END = b"-----END SSH SIGNATURE-----\n"
_MOST_SIGNATURE = 2**16
#: Limits on a bundle, on its decompressed content, and on a line of it, bytes.
_LARGEST_FILE = 2**28
_LARGEST_CONTENT = 2**30
_LONGEST_LINE = 2**24


@dataclass(frozen=True)
class BundledCampaign:
    """A campaign in a bundle: its name, counts and digest, as the other site wrote them."""

    name: str
    operation: str
    system: str
    stack: str
    simulated: bool
    created: float
    trials: int
    runs: int
    measurements: int
    profiles: int
    digest: str


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read completely, and is valid.

    Attributes:
        signer: name of the signer in the file of allowed signers; empty if not verified.
        signed: whether it has a signature, which is verified only if there is a signer.
        names: whether it has the real names of hosts and users.
        created: seconds since 1970, by the clock of the site that made it.
        commtune: version of commtune that made it.
        packed: its content without the signature, compressed.
    """

    campaigns: tuple[BundledCampaign, ...]
    signer: str
    signed: bool
    names: bool
    created: float
    commtune: str
    packed: bytes


def create_bundle(
    file: Path,
    campaigns: Sequence[str] = (),
    *,
    key: Path | None = None,
    names: bool = False,
    db: str | None = None,
) -> Bundle:
    """Writes campaigns into a new bundle; without names, all that were measured here.

    Args:
        key: an OpenSSH key to sign with.
        names: whether to keep names of hosts and users, and the outputs of runs.

    Raises:
        UnknownName, NoAnswer: there is no such campaign.
        UserError: another site measured it, or the file exists.
    """
    if exists(file):
        raise UserError(f"{file} exists", hint="name another file, or move it away")
    with open_readable(db) as opened:
        own = [one.name for one in reversed(list_summaries(db)) if not one.site]
        chosen = list(dict.fromkeys(campaigns)) or own
        if not chosen:
            raise NoAnswer("there is no campaign to share", hint="commtune tune runs one")
        numbers = [_own_number(db, name) for name in chosen]
        with opened.read() as connection:

            def rows() -> Iterator[Row]:
                return chain.from_iterable(read_campaign(connection, one) for one in numbers)

            shown = rows() if names else Pseudonyms.of_rows(rows()).replace_in(rows())
            packed = _pack(shown, names=names)
    bundle = _read_packed(packed, "the bundle")
    signature = signatures.sign_content(packed, key) if key else b""
    with replaced_file(file) as part:
        part.write_bytes(packed + signature)
    return bundle


def _own_number(db: str | None, name: str) -> int:
    found = describe_campaign(db, name)
    if found.site:
        raise UserError(
            f"campaign {name} was measured at {found.site}",
            hint="the site that measured it shares it",
        )
    return found.id


def _pack(rows: Iterator[Row], *, names: bool) -> bytes:
    header: dict[str, Any] = {"format": _FORMAT, "schema": SCHEMA, "commtune": __version__}
    header |= {"created": round(time.time()), "names": names}
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for line in chain([json.dumps(header)], (to_line(*row) for row in rows)):
            file.write(f"{line}\n".encode())
    return packed.getvalue()


def read_bundle(file: Path, allowed_signers: Path | None = None) -> Bundle:
    """Reads a whole bundle, and verifies its signature if there is a file of allowed signers.

    Raises:
        UserError: it is no bundle, or damaged, or not signed by any of them.
    """
    try:
        content = read_file(file, _LARGEST_FILE)
    except OSError as error:
        raise UserError(f"can't read {file}: {error.strerror or error}") from error
    signature, packed = _split_signature(content)
    signer = ""
    if allowed_signers is not None:
        if not signature:
            raise UserError(
                f"{file} is not signed",
                hint="have it made with --sign KEY; or, if you know where it is from: "
                "commtune bundle merge FILE --unsigned SITE",
            )
        # Verified before any of it is decompressed.
        signer = signatures.verify_signature(packed, signature, allowed_signers)
    return replace(_read_packed(packed, str(file)), signer=signer, signed=bool(signature))


def _split_signature(content: bytes) -> tuple[bytes, bytes]:
    """Returns the signature, empty if there is none, and the content without it."""
    place = content.rfind(_SIGNED, max(0, len(content) - _MOST_SIGNATURE))
    if place < 0 or not content.endswith(_SIGNATURE_END):
        return b"", content
    return content[place:], content[:place]


def _read_packed(packed: bytes, named: str) -> Bundle:
    """Reads the content of a bundle, as that of one that is not signed.

    Args:
        named: the bundle, for messages.

    Raises:
        UserError: it is no bundle, or damaged.
    """
    try:
        lines = _lines(packed)
        header = _header(next(lines, None), named)
        campaigns = tuple(_campaigns(_rows(lines)))
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(f"{named} is no bundle, or is cut short: {error}") from error
    except (BadRow, ValueError, RecursionError) as error:
        raise UserError(
            f"{named} is not a bundle that this version of commtune reads: {error}",
            hint="bundles are made by 'commtune bundle create'",
        ) from error
    said = {name: header[name] for name in ("names", "created", "commtune")}
    return Bundle(campaigns, signer="", signed=False, packed=packed, **said)


def _lines(packed: bytes) -> Iterator[Any]:
    """Yields the parsed lines of a bundle, and refuses those beyond the limits on its size."""
    total = number = 0
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while line := file.readline(_LONGEST_LINE + 1):
            number += 1
            total += len(line)
            if len(line) > _LONGEST_LINE or total > _LARGEST_CONTENT:
                most = format_size(
                    _LONGEST_LINE if len(line) > _LONGEST_LINE else _LARGEST_CONTENT
                )
                raise BadRow(f"line {number}: more than {most}")
            try:
                yield json.loads(line, parse_constant=_refuse_constant)
            except (ValueError, RecursionError) as error:
                why = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
                raise BadRow(f"line {number}: {why}") from error


def _refuse_constant(written: str) -> None:
    raise ValueError(written)


def _header(header: Any, named: str) -> dict[str, Any]:
    kinds = {"format": str, "schema": str, "commtune": str, "created": int, "names": bool}
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise BadRow("its first line is no header")
    check_plain(header)
    schema = str(header.get("schema"))
    if re.fullmatch(r"r\d{4}", schema) and schema != SCHEMA:
        newer = schema > SCHEMA
        update = "update commtune: pip install --upgrade commtune"
        raise UserError(
            f"{named}: it has the {'newer' if newer else 'older'} schema {schema}; "
            f"this commtune knows {SCHEMA}",
            hint=update if newer else "have it made again, by a newer commtune",
        )
    wrong = {name for name, kind in kinds.items() if type(header.get(name)) is not kind}
    if wrong or schema != SCHEMA or not 0 <= header["created"] < 2**38:
        raise BadRow("its header is damaged")
    return header


def _rows(lines: Iterator[Any]) -> Iterator[Row]:
    checker = RowChecker()
    for line in lines:
        yield checker.read(line)
    checker.end()


def _campaigns(rows: Iterator[Row]) -> Iterator[BundledCampaign]:
    """Yields a summary of each campaign in a bundle."""
    names: set[str] = set()
    single: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    digest = Digest()
    for table, values in rows:
        if table in ("configurations", "stacks", "systems") and "campaigns" in single:
            yield _summarize(single, counts, digest)
            single, counts, digest = {}, Counter(), Digest()
        if table in ("stacks", "systems", "campaigns"):
            single[table] = values
        if table == "campaigns":
            if values["name"] in names:
                raise BadRow(f"two campaigns are called {values['name']}")
            names.add(values["name"])
        counts[table] += 1
        digest.add(table, values)
    yield _summarize(single, counts, digest)


def _summarize(
    rows: dict[str, dict[str, Any]], counts: Counter[str], digest: Digest
) -> BundledCampaign:
    campaign = rows["campaigns"]
    return BundledCampaign(
        name=campaign["name"],
        operation=str(campaign["what"]["workload"]["operation"]),
        system=rows["systems"]["name"],
        stack=rows["stacks"]["text"],
        simulated=campaign["simulated"],
        created=campaign["created"],
        **{name: counts[name] for name in ("trials", "runs", "measurements", "profiles")},
        digest=str(digest),
    )


def merge_bundle(
    bundle: Bundle,
    site: str,
    db: str | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> list[tuple[str, bool]]:
    """Stores the campaigns of a bundle as those of another site, in one transaction.

    Campaigns that are stored already with the same content are left as they are. Returns the
    same as ``merge_rows``.

    Args:
        site: name of the site that measured them.
        say: called with a message if another program holds the database.

    Raises:
        UserError: a campaign is stored already, with other content than in the bundle.
    """
    signatures.check_site(site)
    digests = {one.name: one.digest for one in bundle.campaigns}
    lines = _lines(bundle.packed)
    next(lines)
    patience = BusyRetry(wait_s(), say)
    with open_database(db, patience) as opened, opened.write(patience) as connection:
        return merge_rows(connection, _rows(lines), digests, site)
