import os

import pytest

from skills.domain_dictionary import DictionaryFile, DomainDictionary
from skills.errors import SkillMisconfigured

TRADE = DomainDictionary(
    [
        ["MI", "心肌梗死", "myocardial infarction"],
        ["CRP", "C-reactive protein", "C反应蛋白"],
        ["WHO", "World Health Organization"],
        ["protein", "蛋白质"],
        ["PTCA", "angioplasty"],
    ]
)


def named(text):
    return [(m.concept.forms[0], m.form) for m in TRADE.mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acute MI treated", [("MI", "MI")]),
        ("急性心肌梗死的治疗", [("MI", "心肌梗死")]),
        ("Myocardial  Infarctions", [("MI", "myocardial infarction")]),
        ("myocardial-infarction", [("MI", "myocardial infarction")]),
        ("ＭＩ", [("MI", "MI")]),
        ("mi casa, MIT, AMI, MI6", []),
        ("who said so", []),
        ("WHO said so", [("WHO", "WHO")]),
        ("the crp level", [("CRP", "CRP")]),
        ("CRPs", [("CRP", "CRP")]),
        ("C reactive protein and protein", [("CRP", "C-reactive protein"), ("protein", "protein")]),
        ("hsCRP升高", []),
        ("CRP升高", [("CRP", "CRP")]),
        ("MI, MI", [("MI", "MI"), ("MI", "MI")]),
        ("ptca", [("PTCA", "PTCA")]),
        ("", []),
        ("İMI", []),
        ("\ud800 MI", [("MI", "MI")]),
    ],
)
def test_finds_the_concepts_that_a_text_names(text, expected):
    assert expected == named(text)


def test_a_word_may_mean_two_things():
    both = DomainDictionary([["MI", "myocardial infarction"], ["MI", "Michigan"]])
    assert 2 == len(both.mentions("MI"))


def test_a_concept_is_its_words_in_any_order():
    one, other = DomainDictionary([["a1", "b2"]]), DomainDictionary([["b2", "a1"]])
    assert one.ids == other.ids
    assert one.ids != DomainDictionary([["a1", "b2", "c3"]]).ids


def write(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "dictionary.yaml"
    source = DictionaryFile(path)
    assert not source.current().concepts
    write(path, "equivalents:\n  - [MI, 心肌梗死]\n")
    assert 1 == len(source.current().concepts)
    assert source.current() is source.current()
    write(path, "equivalents:\n  - [MI, 心肌梗死]\n  - [CRP, C反应蛋白]\n")
    assert 2 == len(source.current().concepts)
    path.unlink()
    assert not source.current().concepts


def test_a_file_that_became_wrong_leaves_the_old_words(tmp_path, caplog):
    path = tmp_path / "dictionary.yaml"
    write(path, "equivalents:\n  - [MI, 心肌梗死]\n")
    source = DictionaryFile(path)
    write(path, "equivalents: [[MI]]")
    assert 1 == len(source.current().concepts)
    assert "equivalents.0" in caplog.text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("equivalents: [[MI]]", "equivalents.0"),
        ("equivalents: [[MI, '']]", "equivalents.0.1"),
        ("equivalents: [[MI, ' - ']]", "equivalents.0.1"),
        ("synonyms: []", "synonyms"),
        ("equivalents: [", "YAML"),
        ("- a", "dictionary"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path, text, problem):
    path = tmp_path / "dictionary.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SkillMisconfigured, match=problem):
        DictionaryFile(path)
