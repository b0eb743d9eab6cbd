"""Plain (unquoted) scalars of YAML documents, which keep their exact text.

- ``12`` and ``1.50`` become numbers whose text is available by ``exact_text``.
- ``0644``, ``0x10``, ``1_000``, ``1:30`` and dates stay text; YAML would read other values.
- ``true`` and ``false`` become booleans.
- ``yes``, ``no``, ``on``, ``off`` become ``AmbiguousWord``: YAML reads them as booleans, but users
  often mean the word. Boolean fields accept them, text fields require quotes.
"""

from __future__ import annotations

from commtune.errors import InvalidValue


class WrittenFloat(float):
    """A number with a fraction; ``text`` is its original text, such as 1.50."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        made = super().__new__(cls, text)
        made.text = text
        return made


class AmbiguousWord(str):
    """An unquoted yes, no, on or off."""


def exact_text(value: object) -> str:
    """Returns the original text of a value, for a field that must be exact text.

    Raises:
        InvalidValue: the value is a boolean, an ambiguous word, null, a list or a mapping.
    """
    if isinstance(value, bool | AmbiguousWord):
        word = str(value).lower() if isinstance(value, bool) else str(value)
        raise InvalidValue(
            f"{word} without quotes is a truth value in YAML", hint=f'write "{word}"'
        )
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str | int | float):
        if "\0" in str(value):
            raise InvalidValue(
                "a NUL character can't stand in an environment variable", hint="leave it out"
            )
        return str(value)
    if value is None:
        raise InvalidValue("a value is missing", hint='write text, or "" for empty text')
    found = "a mapping" if isinstance(value, dict) else "a list"
    raise InvalidValue(f"{found} stands where one value is expected", hint="write one value")
