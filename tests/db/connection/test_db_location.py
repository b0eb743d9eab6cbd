"""Which database is meant, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.db.connection.location import (
    check_revision,
    database_url,
    refuse_token,
    shown_url,
    sqlite_path,
)
from commtune.errors import DatabaseFault, UserError


@pytest.fixture(autouse=True)
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tester's own database is not meant."""
    monkeypatch.delenv("COMMTUNE_DB", raising=False)
    monkeypatch.delenv("COMMTUNE_DB_FILE", raising=False)


def test_the_option_goes_before_the_environment_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert sqlite_path(database_url(None)) == tmp_path / "commtune" / "commtune.db"
    monkeypatch.setenv("COMMTUNE_DB", "sqlite:////env.db")
    assert database_url(None) == "sqlite:////env.db"
    assert database_url("sqlite:////option.db") == "sqlite:////option.db"


def test_the_url_may_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "url"
    monkeypatch.setenv("COMMTUNE_DB_FILE", str(file))
    with pytest.raises(UserError, match="can't be read: No such file or directory"):
        database_url(None)
    file.write_text("\n")
    with pytest.raises(UserError, match="is empty"):
        database_url(None)
    file.write_text("postgresql://ann:s3cret@db/x\n")
    assert database_url(None) == "postgresql+psycopg://ann:s3cret@db/x"
    monkeypatch.setenv("COMMTUNE_DB", "sqlite:////env.db")
    assert database_url(None) == "sqlite:////env.db"


def test_a_device_in_the_place_of_that_file_ends_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_FILE", "/dev/zero")
    with pytest.raises(UserError, match="is not read: everybody can write it"):
        database_url(None)
    monkeypatch.setenv("COMMTUNE_TRUSTED", "/dev/zero")
    with pytest.raises(UserError, match="is no plain text"):
        database_url(None)


def test_a_url_in_a_file_that_others_can_write_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://ann@db/x\n")
    monkeypatch.setenv("COMMTUNE_DB_FILE", str(file))
    tmp_path.chmod(0o755)
    assert database_url(None) == "postgresql+psycopg://ann@db/x"
    file.chmod(0o666)
    with pytest.raises(UserError, match=f"DB_FILE={file} is not read: everybody can write it"):
        database_url(None)


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "odd#name?.db", "ünï.db"])
def test_a_path_is_an_sqlite_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sqlite_path(database_url(name)) == tmp_path / name
    assert sqlite_path(database_url(str(tmp_path / name))) == tmp_path / name


def test_a_path_like_a_url_with_settings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a?b=1.db", str(tmp_path / "x?y=1" / "commtune.db")):
        monkeypatch.delenv("COMMTUNE_DB", raising=False)
        with pytest.raises(UserError, match=r"has '\?' and a word with '='"):
            database_url(name)
        monkeypatch.setenv("COMMTUNE_DB", name)
        with pytest.raises(UserError, match=r"has '\?' and a word with '='"):
            database_url(None)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgresql_means_the_driver_that_is_installed(scheme: str) -> None:
    assert database_url(f"{scheme}://ann@db/x") == "postgresql+psycopg://ann@db/x"
    assert database_url(f"{scheme.upper()}://ann@db/x") == "postgresql+psycopg://ann@db/x"
    assert database_url(f"{scheme}+asyncpg://ann@db/x") == f"{scheme}+asyncpg://ann@db/x"


def test_the_path_of_a_socket_is_quoted() -> None:
    assert database_url("unix:/run/user@1/a?b%41 ü") == "unix:///run/user@1/a%3Fb%2541%20%C3%BC"


def test_sqlite_urls() -> None:
    assert sqlite_path("sqlite:////data/x.db") == Path("/data/x.db")
    assert sqlite_path("sqlite+pysqlite:////data/x.db?timeout=5") == Path("/data/x.db")
    assert sqlite_path("sqlite:///x.db") == Path.cwd() / "x.db"
    assert sqlite_path("postgresql+psycopg://db/x") is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:/ann:s3cret@db/x",
        "postgres:ann:s3cret@db/x",
        "sqlite:/x.db",
        "POSTGRESQL:/ann:s3cret@db/x",
        "MySQL:/ann:s3cret@db/x",
        " postgresql:/ann:s3cret@db/x",
    ],
)
def test_a_url_without_its_slashes_is_no_file(url: str) -> None:
    with pytest.raises(
        UserError, match=r"begins with (\w+):/? and not with (?i:\1)://"
    ) as refusal:
        database_url(url)
    assert refusal.value.hint.startswith(f"write {url.strip().partition(':')[0].lower()}://")
    assert "s3cret" not in refusal.value.message + refusal.value.hint
    assert database_url(f"./{url}").startswith("sqlite:///")


@pytest.mark.parametrize(
    ("url", "form"), [("sqlite:/x.db", "sqlite:////x.db"), ("sqlite:x.db", "sqlite:///x.db")]
)
def test_the_form_of_an_sqlite_url_that_is_hinted_at_is_right(url: str, form: str) -> None:
    with pytest.raises(UserError) as refusal:
        database_url(url)
    assert refusal.value.hint.startswith(f"write {form}, or ")
    assert sqlite_path(database_url(form)) == Path(url.partition(":")[2]).absolute()


@pytest.mark.parametrize("written", ["host=h password=s3cret dbname=y", " dbname = 'y'"])
def test_keywords_of_libpq_are_no_file(written: str) -> None:
    with pytest.raises(UserError, match="a list of keywords") as refusal:
        database_url(written)
    assert "postgresql://USER@HOST:PORT/NAME" in refusal.value.hint
    assert "s3cret" not in refusal.value.message + refusal.value.hint
    assert database_url(f"./{written}").startswith("sqlite:///")


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match="is no plain text"):
        database_url("/tmp/\udcff.db")


@pytest.mark.parametrize("written", ["~nobody-here/x.db", "unix:~nobody-here/socket"])
def test_the_home_of_no_user_is_refused(written: str) -> None:
    with pytest.raises(UserError, match="~nobody-here is not the home folder of any user"):
        database_url(written)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite://x.db"])
def test_an_sqlite_url_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="names no file"):
        sqlite_path(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@db/x",
        "postgresql://ann:s3cret@with@at@db:5432/x?sslmode=require",
        "postgresql://ann:s3cret/slash@db/x",
        "postgresql://db/x?user=ann&password=s3cret",
        "postgresql://db/x?options=-c%20auth.token%3Ds3cret&user=ann",
        "mysql+pymysql://:s3cret@db/x",
        "postgresql://ann@db/x?pass%77ord=s3cret",
        "postgresql://ann@db/x?sslmode=require;PassWord=s3cret;s3cret&opti%6fns=-crole%3Ds3cret",
        "postgresql://ann@db/x;password=s3cret",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    shown = shown_url(url)
    assert "s3cret" not in shown and "***" in shown
    assert shown_url("postgresql://ann@db/x") == "postgresql://ann@db/x"


@pytest.mark.parametrize(
    ("revision", "words", "hint"),
    [
        ("r0007", "schema r0007 of a commtune before", "new one with --db"),
        ("r9999", "newer schema r9999", "update commtune"),
        ("abc", "unknown schema 'abc'", "another database"),
    ],
)
def test_other_schemas_are_refused(revision: str, words: str, hint: str) -> None:
    with pytest.raises(DatabaseFault, match=words) as refusal:
        check_revision(revision, ("campaigns",), "here")
    assert hint in refusal.value.hint


@pytest.mark.parametrize("url", ["https://:s3cret@host/x", "http://s3cret@host", "unix://:s3@/a"])
def test_a_token_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UserError, match="other users of this machine see") as raised:
        refuse_token(url)
    assert "s3" not in f"{raised.value.message}{raised.value.hint}"
    assert "COMMTUNE_TOKEN_FILE" in raised.value.hint


def test_an_at_sign_elsewhere_is_no_token() -> None:
    for url in ("unix:/run/user@1/x.sock", "https://host/a@b", "postgresql://ann:s3cret@db/x"):
        refuse_token(url)
