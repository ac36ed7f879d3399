"""The first words of a page: which command made the run, what it asks, and how its figures are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Opening", "opening_of"]

_TRAPS = (
    "A trap item has two candidate answers: y_s, which the familiar association suggests, and y*, which the question’s"
    " constraint makes right. In its control y_s is right. Log-odds are ln P(y*) − ln P(y_s) in nats; positive means"
    " towards y*."
)
_ANSWERS = (
    "A trap item has two candidate answers: y_s, which the familiar association suggests, and y*, which the question’s"
    " constraint makes right. Answers are read as text: which of the two they settle on, or neither."
)
_WORLDS = (
    "Networks trained on worlds whose prior is known exactly. A trap has two candidate answers: y_s, which the corpus"
    " made frequent, and y*, which the document’s constraint makes right. Dominance is ln P(y_s) − ln P(y*) in nats; r"
    " is the ratio of their counts."
)
_CONCEPTS = (
    "A made concept does not exist: zero matches in the corpus that was searched. A model hallucinates where it"
    " explains one as if it did, and abstains where it says that it does not know it. Real concepts, common and rare,"
    " are asked beside."
)


@dataclass(frozen=True, slots=True)
class Opening:
    """Title and first paragraph of a page.

    Attributes:
        made_by: The command, without its arguments.
        before, after: The title on either side of the model's name.
        lead: The first paragraph.
    """

    made_by: str
    before: str
    after: str
    lead: str


_BY_COMMAND: dict[str, tuple[str, str, str]] = {
    "trapqa": ("Shortcut or constraint: what", "answers", _ANSWERS),
    "synthetic": ("A known prior, learned by", "", _WORLDS),
    "phantom": ("Concepts that do not exist: what", "says of them", _CONCEPTS),
}


def opening_of(command: Sequence[str]) -> Opening:
    """The opening of a run that a command line made.

    Example:
        >>> opening_of(["latentkt", "patch", "smollm2", "--out", "runs/patch"]).made_by
        'latentkt patch'
    """
    words = [word for word in command[:2] if not word.startswith("(")]
    name = words[1] if len(words) > 1 else ""
    before, after, lead = _BY_COMMAND.get(name, ("Shortcut or constraint: what", "follows", _TRAPS))
    return Opening(" ".join(words) or "latentkt", before, after, lead)
