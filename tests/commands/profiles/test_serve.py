"""``commtune serve`` itself: where it listens, what it refuses, how it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from stored_campaigns import Made
from stores import opened_store
from waiting import PATIENCE_S

from commtune.commands.profiles.serve import serve_command
from commtune.errors import EnvironmentFault, UserError
from commtune.service.server import _listen_at, read_place, read_prefix


@pytest.mark.parametrize("written", ["127.0.0.1:0", "localhost:8765", "[::1]:80", "unix:a/b"])
def test_this_machine_is_served(written: str) -> None:
    assert read_place(written, allow_remote=False).is_local


@pytest.mark.parametrize("written", ["0.0.0.0:80", "[::]:80", ":80", "10.0.0.1:80", "host:80"])
def test_other_machines_are_let_in_only_when_told(written: str) -> None:
    with pytest.raises(UserError, match="other machines") as raised:
        read_place(written, allow_remote=False)
    assert "--allow-remote" in raised.value.hint and "ssh -L" in raised.value.hint
    assert not read_place(written, allow_remote=True).is_local


@pytest.mark.parametrize("written", ["", "8765", "host", "127.0.0.1:", "127.0.0.1:x", "a:99999",
                                     "unix:"])  # fmt: skip
def test_what_is_no_place_is_refused(written: str) -> None:
    with pytest.raises(UserError) as raised:
        read_place(written, allow_remote=True)
    assert "unix:PATH" in raised.value.hint


def test_a_prefix_is_a_path() -> None:
    assert [read_prefix(one) for one in ("", "/", "/a/b/")] == ["", "", "/a/b"]
    for bad in ("a", "/a b", "//a", "/../a", "/a?b", '/"a'):
        with pytest.raises(UserError, match="is no path"):
            read_prefix(bad)


def test_a_port_that_is_taken_is_said() -> None:
    with _listen_at(read_place("127.0.0.1:0", allow_remote=False)) as opened:
        taken = read_place(f"127.0.0.1:{opened.getsockname()[1]}", allow_remote=False)
        with pytest.raises(EnvironmentFault, match="can't listen"), _listen_at(taken):
            pass


def test_a_fault_of_the_service_is_not_one_of_its_address() -> None:
    place = read_place("127.0.0.1:0", allow_remote=False)
    with pytest.raises(BrokenPipeError), _listen_at(place):
        raise BrokenPipeError  # whoever read the address has closed the pipe


def test_a_unix_socket_is_private_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    place = read_place(f"unix:{path}", allow_remote=False)
    with _listen_at(place):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(UserError, match="another service listens"), _listen_at(place):
            pass
    assert not path.exists()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with _listen_at(place):  # what a service that was killed left behind is replaced
        pass
    path.write_text("a file of somebody")
    with pytest.raises(UserError, match="no socket"), _listen_at(place):
        pass
    assert path.read_text() == "a file of somebody"


_HEADER = "Bearer a-token-of-a-file"
#: Printed instead of the token that a file holds.
_HOW = "in a browser, append '?token=' and the contents of token"


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database and a token."""
    with opened_store(tmp_path / "commtune.db") as store:
        Made(trials=5, blocks=0).store(store)
    (tmp_path / "token").write_text("a-token-of-a-file")
    (tmp_path / "token").chmod(0o600)
    return tmp_path


def test_the_command_serves_until_it_is_interrupted(folder: Path) -> None:
    words = ["serve", "--db", "commtune.db", "--bind", "unix:socket", "--token-file", "token"]
    command = [sys.executable, "-m", "commtune.cli", *words, "--prefix", "/ct/"]
    served = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert served.stdout is not None
        said = served.stdout.readline().decode()
        assert said == f"serving at http://localhost/ct/ over {folder}/socket\n"
        connection = _OverSocket(folder / "socket")
        headers = {"authorization": _HEADER}
        connection.request("GET", "/ct/api/v1/campaigns", headers=headers)
        assert b"made-up" in connection.getresponse().read()
        connection.request("GET", "/ct/campaigns/made-up/events", headers=headers)
        events = connection.getresponse()
        assert events.readline().startswith(b"retry")
    finally:
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=PATIENCE_S)
    events.read()  # the service ended it
    connection.close()
    assert (served.returncode, out) == (130, b"")
    assert err.decode().splitlines() == [_HOW, "read-only; Ctrl-C ends it"]
    assert not (folder / "socket").exists()


def test_more_ask_at_once_than_files_may_be_open(folder: Path) -> None:
    words = "serve --db commtune.db --bind unix:socket --token-file token"
    script = f"ulimit -Sn 256; exec {sys.executable} -m commtune.cli {words}"
    with subprocess.Popen(
        ["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as served:
        assert served.stdout is not None and served.stderr is not None
        try:
            assert served.stdout.readline().startswith(b"serving")
            jobs = [_OverSocket(folder / "socket") for _ in range(400)]
            for job in jobs:
                job.connect()
            for job in jobs:
                job.request("GET", "/api/v1/systems", headers={"authorization": _HEADER})
            assert {job.getresponse().status for job in jobs} == {200}
            for job in jobs:
                job.close()
        finally:
            served.send_signal(signal.SIGINT)
        said = served.stderr.read().decode().splitlines()
        assert said == [_HOW, "read-only; Ctrl-C ends it"]


def test_campaigns_are_not_ended_over_a_network_in_the_clear() -> None:
    with pytest.raises(UserError, match="whoever listens on the network could end campaigns"):
        serve_command("0.0.0.0:0", allow_remote=True, control=True)


def test_what_is_not_installed_is_named() -> None:
    program = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv[1:] = ['serve'];"
        "from commtune.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 3
    first, hint = ended.stderr.splitlines()
    assert first == "commtune: commtune serve needs the Python package uvicorn"
    assert hint.endswith("-m pip install '.[serve]'  # in commtune's checkout")
