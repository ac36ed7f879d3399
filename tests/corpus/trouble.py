"""Texts and phrases made of every kind of trouble, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = [
    "a", "the", "Darwin", "darwin", "DARWIN", "Charles", "of", "x", "ray", "ab", "eightlet", "ninelette",
    "o", "clock",
    "É",
    "e\u0301tude", "étude", "cafe\u0301", "café", "Straße", "STRASSE", "strasse", "ẞ", "İstanbul", "istanbul",
    "ıslak",
    "σοφός", "ΣΟΦΌΣ", "σοφόσ", "\u212aelvin", "kelvin", "ſchool", "school", "日本", "日本語", "𝒜", "𝒜bc", "a_b", "_",
    "1905",
    "sixteen_letters_", "seventeen_letters", "thirtyfour_letters_are_in_this_word", "ŉ", "ǰ", "Ⅻ", "²", "ﬁne", "fine",
    "ä" * 9, "й" * 17, "가나", "\u1100\u1161", "n\u0303o", "x\u0302y", "\u0345a",
]  # fmt: skip
GAPS = [
    " ", " ", " ", " ", "  ", "\n", "\t \n", "\u00a0", "\u3000", "\u2003 ", "\u2028", "-", "'", "\u2019",
    "\u2013", "\u2014",
    ", ", ". ", " - ", "—", "\u0301", " \u0301 ", ",\n\n", "...", "\u00ad", "\u200b", "/", "\x85", "\x1c",
    "\x01", "\x7f",
    " " * 70, "." * 65, "\u2026", "()",
]  # fmt: skip

word = st.sampled_from(WORDS)
gap = st.sampled_from(GAPS)
space = st.sampled_from([" ", " ", " ", "-", "'", ", ", "\u2019", "\u2013", ". "])


@st.composite
def documents(draw, max_words=40):
    """One document: words and gaps, perhaps with gaps at the edges."""
    parts = [draw(st.sampled_from(["", "", *GAPS]))]
    for _ in range(draw(st.integers(0, max_words))):
        parts += [draw(word), draw(gap)]
    return "".join(parts if draw(st.booleans()) else parts[:-1])


@st.composite
def phrases(draw, max_words=5):
    """One phrase: words joined by single spaces or punctuation, sometimes with punctuation at its edges."""
    parts = [draw(word)]
    for _ in range(draw(st.integers(0, max_words - 1))):
        parts += [draw(space), draw(word)]
    if draw(st.integers(0, 9)) == 0:
        parts.append(draw(st.sampled_from(["+", "++", ".", "'s", "-"])))
    if draw(st.integers(0, 9)) == 0:
        parts.insert(0, draw(st.sampled_from([".", "'", "(", "-", "\u2019"])))
    return "".join(parts)
