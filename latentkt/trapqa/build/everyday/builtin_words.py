"""The built-in stand-ins: endings, stop words, generic words, kinds."""

from __future__ import annotations

__all__ = ["GENERIC", "STOP_WORDS", "kind", "lemma"]

_STOP = """
a about above after again against all also am an and any are as at be because been before being below between both
but by can cannot could did do does doing down during each either else even ever every few for from further get go
got had has have having he her here hers herself him himself his how i if in into is it its itself just let me more
most much must my myself neither no nor not now of off on once one only or other our ours ourselves out over own put
same shall she should so some such take than that the their theirs them themselves then there these they this those
through to too under until up upon us use very was we were what when where which while who whom why will with within
without would yes yet you your yours yourself yourselves
"""

_GENERIC = """
thing things stuff something anything nothing everything someone anyone everyone person people man woman boy girl
good bad nice great okay ok cool fun like love hate want need know think feel make made way lot lots kind sort type
part word name number many few little big small new old same different other none null nan na unknown idk dunno
blank unsure word response missing x
"""

# What an ending would spoil: words that only look like plurals or participles.
_WHOLE_WORDS = """
glasses scissors pants jeans trousers shorts clothes news stairs species series thanks lens gas bus canvas atlas
christmas virus bonus census chaos cactus walrus circus octopus iris pajamas measles physics mathematics politics
tennis something nothing anything everything morning evening wedding ceiling building king ring spring string wing
thing bring sing swing sling sting earring hearing heading lasting warning crooked wicked duckling herring pudding
sibling bed red seed feed need weed speed reed hundred tired bored scared worried excited sacred naked wicked shed
sled breed bleed greed creed deed wed ted acid bread dress glass grass class boss loss moss cross press less mess
chess bless guess stress princess business address address compass always dining sterling darling shilling
"""
STOP_WORDS = frozenset(_STOP.split())
GENERIC = frozenset(_GENERIC.split())
"""Answers that say little of any cue, and marks of a missing answer."""
_WHOLE = frozenset(_WHOLE_WORDS.split())
_IRREGULAR = {
    "men": "man", "women": "woman", "children": "child", "feet": "foot", "teeth": "tooth", "mice": "mouse",
    "geese": "goose", "knives": "knife", "wives": "wife", "lives": "life", "leaves": "leaf", "loaves": "loaf",
    "shelves": "shelf", "wolves": "wolf", "halves": "half", "oxen": "ox", "dice": "die", "lice": "louse",
}  # fmt: skip
# Ending -> what may stand in its place, the longest first.
_ENDINGS = (
    ("ies", ("y", "ie")), ("ches", ("ch", "che")), ("shes", ("sh",)), ("sses", ("ss",)), ("xes", ("x",)),
    ("oes", ("o", "oe")), ("s", ("",)), ("ing", ("", "e")), ("ied", ("y",)), ("ed", ("", "e")),
)  # fmt: skip
_KINDS = {
    "act": "walk drive run ride swim write draw talk speak sing call pay eat drink cook wash sleep work wait read",
    "vehicle": "car bus train truck bike bicycle boat ship plane taxi cab van wagon jeep canoe tractor",
    "tool": "hammer saw knife scissors needle broom mop shovel ladder rope ruler brush comb pen pencil spoon",
    "place": "school bank church store hospital office home house court theater stadium library station",
    "medium": "letter mail phone telephone radio television newspaper book picture film tape camera computer",
    "person": "doctor dentist teacher judge pilot captain nurse clerk cashier teller operator mailman",
}
_KIND_OF = {word: name for name, listed in _KINDS.items() for word in listed.split()}


def kind(word: str) -> str | None:
    """The kind of a word that is listed, else None."""
    return _KIND_OF.get(word)


def lemma(word: str, known: frozenset[str]) -> str:
    """The word without its ending, where what is left is a known word; of a phrase, the last word.

    Example:
        >>> lemma("tool boxes", frozenset({"box"})), lemma("bus", frozenset({"bu"}))
        ('tool box', 'bus')
    """
    head, space, last = word.rpartition(" ")
    return head + space + _last(last, known)


def _last(word: str, known: frozenset[str]) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _WHOLE or len(word) < 4 or word.endswith("ss"):
        return word
    for ending, stems in _ENDINGS:
        if word.endswith(ending):
            for stem in _stems(word[: -len(ending)], ending, stems):
                if len(stem) > 2 and stem in known:
                    return stem
            if len(ending) > 1 and ending[-1] == "s":
                continue
            return word
    return word


def _stems(base: str, ending: str, stems: tuple[str, ...]) -> list[str]:
    found = [base + stem for stem in stems]
    if ending in ("ing", "ed") and len(base) > 3 and base[-1] == base[-2]:
        found.append(base[:-1])  # running, stopped
    return found
