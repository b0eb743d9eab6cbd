"""Signs and verifies bundles by ``ssh-keygen``, with the OpenSSH keys that every site has."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from commtune import process
from commtune.errors import UserError
from commtune.paths import is_file

#: The namespace of signatures, so that one of a commit or a mail is not valid for a bundle.
_NAMESPACE = "commtune-bundle"
_WAIT_S = 60.0
_SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,59}")
_LINE = "NAME namespaces=\"commtune-bundle\" ssh-ed25519 AAAA..., as 'man ssh-keygen' has it"


def sign_content(content: bytes, key: Path) -> bytes:
    """Returns the signature of a content, as ASCII text.

    Args:
        key: a private key without passphrase, or a public one whose private key an agent has.

    Raises:
        UserError: the key is missing, or can't sign.
        MissingComponent: there is no ssh-keygen.
    """
    if not is_file(key):
        raise UserError(f"there is no key {key}", hint="make one: ssh-keygen -t ed25519 -f FILE")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bundle"
        file.write_bytes(content)
        options = ["-Y", "sign", "-q", "-f", str(key.absolute()), "-n", _NAMESPACE]
        said = _run(["ssh-keygen", *options, str(file)])
        signature = file.with_name("bundle.sig")
        if not said.ok or not is_file(signature):
            lines = said.output.strip().splitlines() or ["ssh-keygen failed"]
            raise UserError(
                f"{key} can't sign: {lines[-1]}",
                hint="one with a passphrase signs through an agent: ssh-add FILE; --sign FILE.pub",
            )
        return signature.read_bytes()


def verify_signature(content: bytes, signature: bytes, allowed: Path) -> str:
    """Verifies a signature; returns the signer's name in the file of allowed signers.

    Raises:
        UserError: the signer is not in that file, or the content is not what was signed.
        MissingComponent: there is no ssh-keygen.
    """
    if not is_file(allowed):
        raise UserError(
            f"there is no file of allowed signers {allowed}", hint=f"its lines: {_LINE}"
        )
    with tempfile.TemporaryDirectory() as name:
        file, signed = Path(name) / "bundle", Path(name) / "bundle.sig"
        file.write_bytes(content)
        signed.write_bytes(signature)
        options = ["-n", _NAMESPACE, "-s", str(signed), "-f", str(allowed.absolute())]
        found = _run(["ssh-keygen", "-Y", "find-principals", *options])
        who = found.output.strip().partition("\n")[0].strip()
        if not found.ok or not who:
            raise UserError(f"the bundle's signer is not in {allowed}", hint=f"its lines: {_LINE}")
        # ssh-keygen reads the content only from standard input.
        command = 'file=$1; shift; exec ssh-keygen "$@" < "$file"'
        arguments = ["-Y", "verify", "-I", who, *options]
        if not _run(["sh", "-c", command, "sh", str(file), *arguments]).ok:
            raise UserError(
                "the bundle is not what was signed, or its key may not sign bundles",
                hint="get it again from the site that made it",
            )
    return check_site(who)


def check_site(name: str) -> str:
    """Returns the name of a site.

    Raises:
        UserError: it is not a valid name.
    """
    if not _SITE.fullmatch(name):
        raise UserError(
            f"{name[:60]!r} can't name a site",
            hint="use letters, digits and . _ @ -, 60 at most; begin with a letter or digit",
        )
    return name


def _run(command: Sequence[str]) -> process.Completed:
    names = ("PATH", "HOME", "SSH_AUTH_SOCK")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return process.run_process(command, environment=environment, timeout_s=_WAIT_S)
