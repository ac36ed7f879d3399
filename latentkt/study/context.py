"""What every worker of a study has: the model, the items, the way prompts are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.study.main import StudyOptions
    from latentkt.trapqa import ItemSet, TrapItem

__all__ = ["Context", "ContextMaker", "read_items"]


@dataclass(frozen=True)
class Context:
    """An opened model and the items.

    Attributes:
        handle: The model.
        items: The items by id.
        options: What the study was asked for.
    """

    handle: ModelHandle
    items: dict[str, TrapItem]
    options: StudyOptions

    @property
    def template(self) -> str:
        """`chat` where the tokenizer has a template and no other was asked for, else `plain`."""
        if self.options.template is not None:
            return self.options.template
        return "chat" if self.handle.has_chat_template else "plain"

    def of_family(self, family: str) -> list[TrapItem]:
        """All items of a family, whether or not the preset looks inside them."""
        return [item for item in self.items.values() if item.family == family]


@dataclass(frozen=True)
class ContextMaker:
    """Makes the context anew in each worker; it is all that is sent there.

    Attributes:
        options: What the study was asked for.
        check: Whether opening proves the reading again; the first worker's proof is enough.
    """

    options: StudyOptions
    check: bool = False

    def __call__(self) -> Context:
        """Open the model and read the items."""
        from latentkt.models import open_model

        options = self.options
        handle = open_model(options.model, device=options.device, dtype=options.dtype, check=self.check)
        return Context(handle, {item.id: item for item in read_items(options)}, options)


def read_items(options: StudyOptions) -> ItemSet:
    """The items of a study: the built-in set or a file."""
    from latentkt.trapqa import builtin_items, load_items

    return builtin_items() if options.items is None else load_items(options.items)
