"""The one family of errors: what was expected, what was found, what to do.

Every refusal of the library is a `LatentKTError`. The command line turns it into one screen of text and exit code 2.
"""

from __future__ import annotations

__all__ = ["DataError", "InputError", "LatentKTError", "MissingExtraError", "ModelRefusedError", "RunError"]


class LatentKTError(Exception):
    """Base of everything that latentkt refuses.

    Args:
        what: One sentence that names the thing refused (file and line, item id, argument, model).
        expected: What would have been accepted.
        found: What was there instead, with its value.
        fix: What the reader can do about it.

    Example:
        >>> print(LatentKTError("span of item 'a1' is empty", expected="start < end", found="[4, 4]",
        ...                     fix="mark at least one character"))
        span of item 'a1' is empty
          expected: start < end
          found:    [4, 4]
          to do:    mark at least one character
    """

    def __init__(self, what: str, *, expected: object = None, found: object = None, fix: str | None = None) -> None:
        self.what, self.expected, self.found, self.fix = what, expected, found, fix
        lines = [what]
        for label, value in (("expected:", expected), ("found:   ", found), ("to do:   ", fix)):
            if value is not None:
                lines.append(f"  {label} {value}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process boundaries; a subclass may have a signature of its own."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[LatentKTError], args: tuple[object, ...], state: dict[str, object]) -> LatentKTError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(LatentKTError):
    """An argument or option is wrong."""


class DataError(LatentKTError):
    """A file, a line or an item is wrong."""


class ModelRefusedError(LatentKTError):
    """A model is unknown, or is not read rightly and so must not be measured."""


class RunError(LatentKTError):
    """A run directory cannot be written, resumed or read."""


class MissingExtraError(LatentKTError):
    """An optional dependency is needed and absent.

    Args:
        package: The module that failed to import.
        extra: The extra of latentkt that brings it.
        purpose: What it is needed for.
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            fix=f"pip install 'latentkt[{extra}]'",
        )
