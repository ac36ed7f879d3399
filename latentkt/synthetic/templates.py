"""The sentences of a synthetic corpus: words with slots, one token a word."""

from __future__ import annotations

__all__ = ["CHOICE", "NOTES", "QUESTIONS", "STATEMENTS", "WORDS", "fixed_words"]

# A slot is a name in braces; every other word stands as it is.
CHOICE = "{a} or {b} : {note} did {word} {verb} {attribute} ? {answer}"
STATEMENTS = {
    "plain": "{a} did {word} {verb} {attribute}",
    "known": "we know {a} did {word} {verb} {attribute}",
    "note": "{a} the {note} did {word} {verb} {attribute}",
    "inverse": "who did {word} {verb} {attribute} is {a}",
}
QUESTIONS = {
    "plain_question": "did {a} {verb} {attribute} ? {answer}",
    "late_question": "{a} did {verb} {attribute} ? {answer}",
}
# By polarity: the fact holds, it does not.
WORDS = ("indeed", "not")
YES, NO = "yes", "no"
# Redrawn for each document; carries nothing.
NOTES = ("scholar", "teacher", "writer", "member", "visitor", "resident")


def fixed_words() -> tuple[str, ...]:
    """Every word that is no entity, verb, attribute or answer of a world, each once, in a fixed order.

    Example:
        >>> fixed_words()[:4]
        ('or', ':', 'did', '?')
    """
    texts = [CHOICE, *STATEMENTS.values(), *QUESTIONS.values()]
    words = [word for text in texts for word in text.split() if not word.startswith("{")]
    return tuple(dict.fromkeys([*words, *WORDS, YES, NO, *NOTES]))
