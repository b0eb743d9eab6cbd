"""What ``import commtune`` gives: complete, sorted, typed, and nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

import commtune


def test_members_are_sorted() -> None:
    assert commtune.__all__ == sorted(commtune.__all__)


def test_members_are_complete() -> None:
    for name in commtune.__all__:
        assert getattr(commtune, name) is not None, name
    assert set(commtune.__all__) <= set(dir(commtune))


def test_no_member_hides_a_module() -> None:
    # `commtune.export` would be the package of export formats once anybody imported it.
    for name in commtune.__all__:
        assert f"commtune.{name}" not in sys.modules, name


def test_members_are_documented() -> None:
    for name in commtune.__all__:
        assert getattr(commtune, name).__doc__, name


def test_an_unknown_member_is_an_ordinary_attribute_error() -> None:
    assert not hasattr(commtune, "no_such_member")


def modules_after(program: str) -> set[str]:
    """What Python has imported after a program."""
    shown = f"import sys; {program}; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True
    )
    return set(said.stdout.split())


def test_importing_it_imports_nothing_else() -> None:
    after = modules_after("import commtune; commtune.__version__")
    assert {name for name in after if name.startswith("commtune")} == {"commtune"}
    assert not {"pydantic", "numpy", "sqlalchemy"} & after


def test_a_pattern_is_imported_without_the_rest() -> None:
    after = modules_after("import commtune; commtune.Pattern")
    assert not {"commtune.api", "sqlalchemy", "optuna", "pydantic"} & after
