"""Ctrl-C at any line of what holds it back: it comes once, and the next one comes as well."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import pytest

from commtune import interrupts
from commtune.interrupts import Interrupts

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def _held() -> None:
    """One inside of another, as where a run is settled."""
    with Interrupts(), Interrupts() as inner, inner.let_through():
        pass


def _struck_at(step: int) -> tuple[list[int], bool]:
    """Ctrl-C at one step through the module; the lines of all steps, and whether it came."""
    lines: list[int] = []

    def look(frame: FrameType, what: str, _value: Any) -> Any:
        if frame.f_code.co_filename != interrupts.__file__:
            return None
        if what == "line":
            lines.append(frame.f_lineno)
            if len(lines) == step:
                os.kill(os.getpid(), signal.SIGINT)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        _held()
    except KeyboardInterrupt:
        return lines, True
    finally:
        sys.settrace(before)
    return lines, False


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_wherever_it_comes_the_next_one_comes_as_well() -> None:
    before = {number: signal.signal(number, _interrupt) for number in _NUMBERS}
    try:
        for step in range(1, len(_struck_at(0)[0]) + 1):
            lines, came = _struck_at(step)
            assert came, f"lost in line {lines[step - 1]}"
            _held()
            for number in _NUMBERS:
                with pytest.raises(KeyboardInterrupt):
                    os.kill(os.getpid(), number)
                    pytest.fail(f"{number.name} is held back since line {lines[step - 1]}")
                signal.signal(number, _interrupt)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
