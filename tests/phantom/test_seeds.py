"""Every format of seeds: what is read, what is passed over and counted, what is refused."""

from __future__ import annotations

import gzip
import json

import pytest

from latentkt.errors import DataError, InputError
from latentkt.phantom import Seeds, event_query, load_seeds, make_concepts
from latentkt.phantom.seeds.loading import FORMATS, find_format
from latentkt.phantom.seeds.popqa import PERSON_OBJECTS, PERSON_SUBJECTS


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cell(value):
    return {"type": "literal", "value": value}


POPQA = (
    "id\tsubj\tprop\tobj\tquestion\n"
    "1\tGeorge Rankin\toccupation\tpolitician\tq\n"
    "2\tDune\tauthor\tFrank Herbert\tq\n"
    "3\tLyon\tcapital of\tRhône\tq\n"
    "4\tAlien\tgenre\thorror film\tq\n"
    "5\tA Person\tplace of birth\tVienna\tq\n"
)
NCBI = (
    "10021369|t|A cofactor protein.\n10021369|a|Colon cancer and others.\n"
    "10021369\t0\t12\tcolon cancer\tModifier\tD003110\n"
    "10021369\t20\t28\tcolorectal cancer\tDiseaseClass\tOMIM:114500|D015179\n"
)
WIKITEXT = (
    "== A ==\n{{term |1=[[Cell (biology)|cell wall]] |2=x}}\n{{defn|1=A wall: of cells}}\n"
    "{{Term|''mitosis''}}<ref>a</ref>\n; [[pericline]]\n: text\n;anticline : text\n"
)
UMNSRS = ("Tylenol", "Pain")
MEMBERS = json.dumps({"query": {"categorymembers": [{"title": "estoppel"}, {"title": "Category:Law"}]}})
EVENTS = '{"name": "Ypres", "type": "battle"}\n{"name": "Eve"}\n'
MEDAL = 'ABSTRACT_ID,TEXT,LOCATION,LABEL\n1,"a, b",3,carotid stenosis\n'
PAIRS = "Mean,Stdev,Term1,Term2,CUI1,CUI2\n1,2,Tylenol,Pain,C1,C2\n"
CASES = {
    "list.txt": ("text", "# ours\ncell wall\r\n\n cell  wall \nwave\n", {"list": ("cell wall", "wave")}),
    "list.json": ("json", '["a b", "c"]', {"list": ("a b", "c")}),
    "groups.json": ("json", '{"x": ["a"], "y": ["b", "a"], "z": []}', {"x": ("a",), "y": ("b",)}),
    "rows.jsonl": ("jsonl", EVENTS, {"battle": ("Ypres",), "rows": ("Eve",)}),
    "table.csv": ("table", 'id,term,category\n1,"a, b",x\n2,c,\n', {"x": ("a, b",), "table": ("c",)}),
    "table.tsv": ("table", "Label\tx\none\t1\n", {"table": ("one",)}),
    "popQA.tsv": ("popqa", POPQA, {"work or place": ("Dune", "Lyon", "Rhône", "Alien", "Vienna")}),
    "corpus.txt": ("ncbi", NCBI, {"NCBI disease": ("colon cancer", "colorectal cancer")}),
    "medal.csv": ("medal", MEDAL, {"MeDAL": ("carotid stenosis",)}),
    "umnsrs.csv": ("umnsrs", PAIRS, {"UMNSRS": UMNSRS}),
    "pairs.txt": ("umnsrs", "Text 1: Tylenol\nText 2: Pain\nscore\n", {"UMNSRS": UMNSRS}),
    "gloss.wiki": ("glossary", WIKITEXT, {"gloss": ("cell wall", "mitosis", "pericline", "anticline")}),
    "members.json": ("glossary", MEMBERS, {"members": ("estoppel",)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_format_is_found_and_read(tmp_path, name):
    form, text, expected = CASES[name]
    path = write(tmp_path, name, text)
    assert find_format(path) == form
    assert dict(load_seeds([path]).by_category) == expected
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert dict(load_seeds([packed]).by_category) == expected


def test_wikidata_events_are_sorted_by_the_words_of_their_types(tmp_path):
    def row(item, label, kind):
        return {"item": cell(item), "itemLabel": cell(label), "type": cell("t"), "typeLabel": cell(kind)}

    rows = [
        row("Q1", "Cannes Festival", "recurring event"),
        row("Q1", "Cannes Festival", "film festival"),
        row("Q2", "Q2", "film festival"),
        row("Q3", "Paris Fire", "fire"),
        row("Q4", "Polish vote", "municipal election"),
        {"item": cell("Q5")},
    ]
    path = write(tmp_path, "events.json", json.dumps({"head": {}, "results": {"bindings": rows}}))
    seeds = load_seeds([path])
    assert dict(seeds.by_category) == {"festival": ("Cannes Festival",), "election": ("Polish vote",)}
    assert dict(seeds.skipped) == {"no label": 2, "type without a keyword": 1}
    plain = write(tmp_path, "accident.json", json.dumps([{"itemLabel": "Tay Bridge disaster", "item": "Q7"}]))
    assert dict(load_seeds([plain]).by_category) == {"accident": ("Tay Bridge disaster",)}
    assert "wd:Q8065 " in event_query("natural disaster")
    with pytest.raises(InputError, match="no class"):
        event_query("party")


def test_persons_of_popqa_are_passed_over(tmp_path):
    assert {"occupation", "place of birth"} <= PERSON_SUBJECTS and {"author", "director"} <= PERSON_OBJECTS
    seeds = load_seeds([write(tmp_path, "popQA.tsv", POPQA)])
    assert seeds.skipped["a person"] == 3 and seeds.skipped["no name"] == 2


def test_what_is_passed_over_is_counted(tmp_path):
    path = write(tmp_path, "a.txt", "x\nx\n  \n...\n" + "y" * 201 + "\nb\x07c\n\u0065\u0301t\u00e9\n\u00e9t\u00e9\n")
    seeds = load_seeds([path])
    assert dict(seeds.by_category) == {"a": ("x", "\u00e9t\u00e9")}
    assert dict(seeds.skipped) == {
        "repeated": 2, "blank": 1, "no letter or digit": 1, "longer than 200 characters": 1, "control characters": 1,
    }  # fmt: skip


def test_categories_may_be_given(tmp_path):
    path = write(tmp_path, "a.json", '{"x": ["p"], "y": ["q"]}')
    assert dict(load_seeds([f"mine@{path}"]).by_category) == {"mine": ("p", "q")}
    assert dict(load_seeds([path], category="all").by_category) == {"all": ("p", "q")}
    assert dict(load_seeds([path]).only(["y"]).by_category) == {"y": ("q",)}
    with pytest.raises(DataError, match="no seeds of that category"):
        load_seeds([path]).only(["z"])
    assert [(c.concept, c.method, c.parents) for c in load_seeds([path]).concepts("term")] == [
        ("p", "real", ()),
        ("q", "real", ()),
    ]


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.txt", "\n\n", "auto"),
        ("a.json", '{"x": "p"}', "auto"),
        ("a.json", "{", "auto"),
        ("a.jsonl", '{"x": "p"}\n', "auto"),
        ("a.jsonl", "3\n", "auto"),
        ("a.csv", "x,y\n1,2\n", "auto"),
        ("a.csv", "x,y\n1,2\n", "popqa"),
        ("a.csv", "x,y\n1,2\n", "medal"),
        ("a.csv", "x,y\n1,2\n", "umnsrs"),
        ("a.txt", "x\n", "umnsrs"),
        ("a.txt", "x\n", "ncbi"),
        ("a.txt", "x\n", "glossary"),
        ("a.json", '{"query": {}}', "glossary"),
        ("a.json", "[3]", "wikidata"),
        ("a.json", '[{"item": "Q1"}]', "wikidata"),
        ("a.txt", "x\n", "magic"),
    ],
)
def test_what_is_not_of_the_format_is_refused(tmp_path, name, text, form):
    assert "magic" not in FORMATS
    with pytest.raises((DataError, InputError)):
        load_seeds([write(tmp_path, name, text)], format=form)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_seeds([tmp_path / "none.txt"])
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match="UTF-8"):
        load_seeds([tmp_path / "a.txt"])


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(gzip.compress(b"statutory law\nfalse verdict\n" * 9)[:-12])
    with pytest.raises(DataError, match="damaged gzip"):
        load_seeds([path])


def test_tables_are_not_cut_to_their_header(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("term,category\nsteel, wall mill,a\n")
    with pytest.raises(DataError, match="row 2: too many cells"):
        load_seeds([path])
    path.write_text('term,category\n"' + "x" * 200_000 + '"\n')
    with pytest.raises(DataError, match="not a table"):
        load_seeds([path])
    facts = tmp_path / "popQA.tsv"
    facts.write_text("subj\tprop\tobj\nAlba\n")
    assert load_seeds([facts]).by_category == {"work or place": ("Alba",)}


def test_nothing_made_is_a_seed_of_a_category_that_was_left_out():
    seeds = Seeds({"law": ("civil law", "common verdict"), "other": ("common law", "civil verdict")})
    with pytest.raises(DataError, match="no term can be made"):
        make_concepts(seeds.only(["law"]), kind="term", n=9)
