"""The files that the tests' PBS is configured by, and how its programs are called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from slurm_config import Place

#: Where OpenPBS is installed; Debian has no package of it.
PBS = Path(os.environ.get("COMMTUNE_TESTS_PBS", "/opt/openpbs"))
DATABASE_PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path("/usr/bin"))
#: Who submits: PBS takes no jobs of root's.
USER, USER_NUMBER = "tuner", 4242

_SERVER_FOLDERS = (
    *("server_logs", "sched_logs", "comm_logs", "sched_priv", "server_priv/accounting"),
    *("server_priv/jobs", "server_priv/users", "server_priv/hooks/tmp"),
)
_NODE_FOLDERS = ("aux", "mom_logs", "mom_priv/jobs", "mom_priv/hooks/tmp", "checkpoint")


def environment(conf: Path) -> dict[str, str]:
    """What the daemons, and PBS's programs for root, are called in."""
    return {
        "PATH": f"{DATABASE_PROGRAMS}:{PBS}/bin:{PBS}/sbin:{os.environ['PATH']}",
        "HOME": "/root",
        "LC_ALL": "C",
        "PBS_CONF_FILE": str(conf),
        "PGSQL_BIN": str(DATABASE_PROGRAMS),
        "PGSQL_DIR": str(DATABASE_PROGRAMS.parent),
        "LD_LIBRARY_PATH": f"{PBS}/lib",
    }


def write_files(place: Place) -> None:
    """Makes the cluster's folders and writes the configuration of its server."""
    folder, home = place.folder, place.folder / "server"
    for name in ("etc", "run", "user"):
        (folder / name).mkdir()
    (folder / "etc" / "hosts").write_text(place.hosts)
    passwd = f"{USER}:x:{USER_NUMBER}:{USER_NUMBER}::{folder}/user:/bin/bash\n"
    (folder / "etc" / "passwd").write_text(Path("/etc/passwd").read_text() + passwd)
    group = f"{USER}:x:{USER_NUMBER}:\n"
    (folder / "etc" / "group").write_text(Path("/etc/group").read_text() + group)
    _make_home(home, _SERVER_FOLDERS)
    (home / "server_priv" / "db_user").write_text("postgres")
    (home / "server_priv" / "db_user").chmod(0o600)
    hooks = PBS / "lib/python/altair/pbs_hooks"
    for hook in hooks.glob("PBS_power*"):
        shutil.copy(hook, home / "server_priv" / "hooks")
    for name, source in (
        ("dedicated_time", "pbs_dedicated"),
        ("holidays", "pbs_holidays"),
        ("resource_group", "pbs_resource_group"),
        ("sched_config", "pbs_sched_config"),
    ):
        shutil.copy(PBS / "etc" / source, home / "sched_priv" / name)
    (folder / "pbs.conf").write_text(_conf(place, home, place.host))


def write_node(place: Place, node: str) -> Path:
    """Makes a node's folders and its configuration; returns where that is."""
    home = place.folder / node
    if not home.exists():
        _make_home(home, _NODE_FOLDERS)
        # All files are seen everywhere: nothing is copied.
        (home / "mom_priv" / "config").write_text(f"$clienthost {place.host}\n$usecp *:/ /\n")
    conf = place.folder / f"{node}.conf"
    conf.write_text(_conf(place, home, node) + f"PBS_MOM_NODE_NAME={node}\n")
    return conf


def _make_home(home: Path, folders: Sequence[str]) -> None:
    for name in folders:
        (home / name).mkdir(parents=True)
    for name in ("spool", "undelivered"):
        (home / name).mkdir()
        (home / name).chmod(0o1777)
    for name in ("server_priv", "sched_priv"):
        if (home / name).exists():
            (home / name).chmod(0o750)
    (home / "pbs_environment").write_text("PATH=/bin:/usr/bin\n")
    (home / "pbs_version").write_text("23.06.06\n")


def _conf(place: Place, home: Path, name: str) -> str:
    is_server = name == place.host
    words = {
        "PBS_SERVER": place.host,
        "PBS_EXEC": PBS,
        "PBS_HOME": home,
        "PBS_LEAF_NAME": name,
        "PBS_CORE_LIMIT": 0,
        "PBS_SCP": "/bin/false",
        "PBS_DATA_SERVICE_USER": "postgres",
        "PBS_START_SERVER": int(is_server),
        "PBS_START_SCHED": int(is_server),
        "PBS_START_COMM": int(is_server),
        "PBS_START_MOM": int(not is_server),
    }
    return "".join(f"{key}={value}\n" for key, value in words.items())
