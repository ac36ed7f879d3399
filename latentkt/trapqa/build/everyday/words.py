"""What cleaning needs to know of a word: its lemma, whether it says nothing, its kind, how frequent it is.

spaCy (model `en_core_web_sm`, parser off), NLTK's WordNet and wordfreq are used where they are installed, as the paper
used them. Where one is not, a built-in stand-in takes its place and says so by name: `sources` goes into every file,
because two machines with other packages may give other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from latentkt.trapqa.build.everyday import builtin_words as builtin

__all__ = ["WordTools", "word_tools"]

SPACY_MODEL = "en_core_web_sm"


@dataclass(frozen=True)
class WordTools:
    """What is known of words, and from where.

    Attributes:
        lemma: Word or phrase -> its lemma (of a phrase: with the lemma of its last word).
        empty: Whether a word is a stop word or otherwise says nothing.
        kind: Coarse kind of what the word names ("artifact", "act", …), or None where it is not known.
        zipf: Zipf frequency (log10 of occurrences in a billion words), or None where there is no source.
        sources: What each of the four came from.
    """

    lemma: Callable[[str], str]
    empty: Callable[[str], bool]
    kind: Callable[[str], str | None]
    zipf: Callable[[str], float | None]
    sources: Mapping[str, str] = field(default_factory=dict)


def word_tools(vocabulary: Iterable[str], *, use: Literal["auto", "builtin"] = "auto") -> WordTools:
    """The best tools that are installed.

    Args:
        vocabulary: The words that will be asked for, in small letters; the built-in lemmas take off an ending only
            where a word of this vocabulary is left.
        use: `auto`: spaCy, NLTK and wordfreq where they are; `builtin`: none of them, the same everywhere.

    Example:
        >>> tools = word_tools({"nail", "nails", "glass", "glasses"}, use="builtin")
        >>> tools.lemma("nails"), tools.lemma("glasses"), tools.empty("the"), tools.zipf("nail")
        ('nail', 'glasses', True, None)
    """
    known = frozenset(vocabulary)
    auto = use == "auto"
    lemma, empty, lemmas, stops = (_spacy(known) if auto else None) or _own(known)
    kind, kinds = (_wordnet() if auto else None) or (builtin.kind, "built-in word lists")
    zipf, frequencies = (_wordfreq() if auto else None) or (lambda word: None, "none: no frequency limits")
    sources = {"lemmas": lemmas, "stop words": stops, "kinds": kinds, "frequencies": frequencies}
    return WordTools(lemma, empty, kind, zipf, sources)


def _own(known: frozenset[str]) -> tuple[Any, Any, str, str]:
    return (
        lambda word: builtin.lemma(word, known),
        lambda word: word in builtin.STOP_WORDS or word in builtin.GENERIC,
        "built-in endings",
        "built-in list",
    )


def _spacy(known: frozenset[str]) -> tuple[Any, Any, str, str] | None:
    try:
        import spacy

        nlp = spacy.load(SPACY_MODEL, disable=["parser", "ner"])
    except (ImportError, OSError):
        return None
    words = sorted(known)
    parsed = dict(zip(words, nlp.pipe(words), strict=True))

    def tokens(word: str) -> Any:
        return parsed[word] if word in parsed else nlp(word)

    def lemma(word: str) -> str:
        listed = [token.text for token in tokens(word)]
        return " ".join([*listed[:-1], tokens(word)[-1].lemma_.lower()])

    def empty(word: str) -> bool:
        return word in builtin.GENERIC or all(token.is_stop or token.is_punct for token in tokens(word))

    name = f"spaCy {spacy.__version__}, {SPACY_MODEL} {nlp.meta.get('version', '?')}"
    return lemma, empty, name, f"{name}; built-in list of generic words"


def _wordnet() -> tuple[Any, str] | None:
    try:
        import nltk
        from nltk.corpus import wordnet

        wordnet.synsets("nail")
    except (ImportError, LookupError, OSError):
        return None

    def kind(word: str) -> str | None:
        found = wordnet.synsets(word.replace(" ", "_"))
        return found[0].lexname().partition(".")[2] if found else None

    return kind, f"WordNet by NLTK {nltk.__version__}, first synset"


def _wordfreq() -> tuple[Any, str] | None:
    try:
        from importlib.metadata import version

        from wordfreq import zipf_frequency
    except ImportError:
        return None
    return (lambda word: float(zipf_frequency(word, "en"))), f"wordfreq {version('wordfreq')}"
