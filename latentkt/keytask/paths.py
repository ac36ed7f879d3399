"""Which two paths compete, and for which two answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError

__all__ = ["PathPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPair:
    """The correct path (k*, t*) with its answer y*, and the shortcut path (k_s, t_s) with y_s, as indices.

    The two paths may share the key (*same key*: pure task retrieval) or the task (*same task*: pure key selection),
    not both; the two answers differ.

    Attributes:
        k_s: Index of the shortcut key.
        t_s: Index of the shortcut task.
        k_0: Index of the correct key, k* in print.
        t_0: Index of the correct task, t* in print.
        y_s: Index of the shortcut answer.
        y_0: Index of the correct answer, y* in print.

    Raises:
        InputError: The two paths or the two answers are the same, or an index is no non-negative whole number.

    Example:
        >>> PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1).mode
        'distinct'
    """

    k_s: int
    t_s: int
    k_0: int
    t_0: int
    y_s: int
    y_0: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise InputError(f"{field.name} is {value!r}", expected="an index: a whole number, 0 or more")
        if (self.k_s, self.t_s) == (self.k_0, self.t_0):
            raise InputError(
                "the two paths are the same",
                expected="(k_s, t_s) other than (k*, t*)",
                found=f"both are (k, t) = ({self.k_s}, {self.t_s})",
                fix="change k_s, t_s, k_0 or t_0: two paths compete, they may share the key or the task but not both",
            )
        if self.y_s == self.y_0:
            raise InputError(
                "y_s and y* are the same answer",
                expected="two different answers",
                found=f"y_s = y* = {self.y_s}",
                fix="change y_s or y_0",
            )

    @property
    def mode(self) -> str:
        """`distinct`, `same_key` or `same_task`."""
        if self.k_s == self.k_0:
            return "same_key"
        return "same_task" if self.t_s == self.t_0 else "distinct"

    def check_within(self, n_keys: int, n_tasks: int, n_answers: int) -> None:
        """Refuse an index that the model does not have.

        Raises:
            InputError: An index is too large; the message names it and the number of keys, tasks or answers.
        """
        sizes = {"k": ("keys", n_keys), "t": ("tasks", n_tasks), "y": ("answers", n_answers)}
        for field in fields(self):
            what, size = sizes[field.name[0]]
            value = getattr(self, field.name)
            if value >= size:
                raise InputError(
                    f"{field.name} = {value} is not an index of the model's {what}",
                    expected=f"0 to {size - 1}",
                    found=value,
                )

    def off_task_cells(self, n_keys: int, n_tasks: int) -> NDArray[np.bool_]:
        """Cells (k, t) whose key is one of the pair and whose task is not, as a mask of shape (K, T)."""
        mask = np.zeros((n_keys, n_tasks), dtype=bool)
        mask[[self.k_s, self.k_0]] = True
        mask[:, [self.t_s, self.t_0]] = False
        return mask

    def off_key_cells(self, n_keys: int, n_tasks: int) -> NDArray[np.bool_]:
        """Cells whose key is not one of the pair, as a mask of shape (K, T)."""
        mask = np.ones((n_keys, n_tasks), dtype=bool)
        mask[[self.k_s, self.k_0]] = False
        return mask
