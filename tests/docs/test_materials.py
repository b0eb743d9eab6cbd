"""What ``make tune`` installs: its bill of materials, and the audit of known vulnerabilities."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from components import require_component

_ROOT = Path(__file__).parents[2]
_PYTHON = _ROOT / ".audit" / "bin" / "python"


@pytest.fixture(autouse=True)
def tools() -> None:
    require_component("'make audit', once", (_ROOT / ".audit" / "installed").exists())


def _read_pins() -> dict[str, set[str]]:
    """Hashes of what pip may install, by name and version."""
    wheels = (_ROOT / "commtune/cluster/mpi/requirements").glob("*.txt")
    files = [*(_ROOT / "requirements" / name for name in ("pip.txt", "run.txt")), *wheels]
    pins: dict[str, set[str]] = {}
    for line in "\n".join(file.read_text() for file in files).splitlines():
        if pin := re.match(r"([a-z][\w.-]*==[^ ]+)", line):
            hashes = pins.setdefault(pin[1], set())
        elif digest := re.search(r"--hash=sha256:(\w+)", line):
            hashes.add(digest[1])
    return pins


@pytest.mark.slow
def test_the_bill_names_each_package_with_its_version_and_hashes(tmp_path: Path) -> None:
    bill = tmp_path / "bill.json"
    subprocess.run(["sh", "scripts/sbom", bill], cwd=_ROOT, check=True)
    read = json.loads(bill.read_text())
    assert read["bomFormat"] == "CycloneDX"
    assert read["metadata"]["component"]["version"]
    listed = {
        f"{part['name']}=={part['version']}": {
            digest["content"] for place in part["externalReferences"] for digest in place["hashes"]
        }
        for part in read["components"]
    }
    assert len(listed) > 40
    assert listed == _read_pins()


@contextmanager
def _serve_advisories(*vulnerable: str) -> Iterator[str]:
    """A server with OSV's protocol that knows one vulnerability of each of these packages."""

    class Advisories(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = asked["package"]["name"], asked["version"]
            affected = {"package": asked["package"], "versions": [version], "ranges": []}
            found = {"id": "PYSEC-0000-1", "details": "", "affected": [affected]}
            answer = json.dumps({"vulns": [found]} if name in vulnerable else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Advisories) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def _audit(url: str) -> subprocess.CompletedProcess[str]:
    words = [str(_PYTHON), "scripts/audit", url]
    return subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False)


def test_known_vulnerabilities_fail_the_audit() -> None:
    """Of what comes with the command line, of pip, and of a wheel of an MPI."""
    names = ["mako", "mpich", "pip"]
    with _serve_advisories(*names) as url:
        done = _audit(url)
    assert done.returncode == 1, done.stderr
    told = re.findall(r"^([\w.-]+) .*PYSEC-0000-1", done.stdout, re.MULTILINE)
    assert sorted(told) == names, done.stdout


def test_no_known_vulnerability_is_said() -> None:
    with _serve_advisories("another-package") as url:
        done = _audit(url)
    assert done.returncode == 0, done.stderr
    assert "No known vulnerabilities found" in done.stderr


def test_a_database_out_of_reach_is_said_and_fails_nothing() -> None:
    with _serve_advisories() as url:
        pass
    done = _audit(url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not audited: the advisory database can't be reached (http")
