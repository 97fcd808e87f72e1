import json

import docx
import pypdfium2
import pytest

from serve_app.samples import DOCUMENTS, QUESTIONS
from serve_app.samples.binaries import EXPENSES, SOURCES, WARRANTY, build
from skills.language import content_words, language_of, words


def squeezed(text):
    return "".join(text.split())


def word_text(path):
    return squeezed("".join(p.text for p in docx.Document(str(path)).paragraphs))


def pdf_text(data):
    document = pypdfium2.PdfDocument(data)
    try:
        return squeezed("".join(page.get_textpage().get_text_range() for page in document))
    finally:
        document.close()


def test_the_committed_files_say_what_their_sources_say():
    policy = (SOURCES / "expense-policy.md").read_text(encoding="utf-8").replace("#", "")
    assert squeezed(policy) == word_text(EXPENSES)
    warranty = (SOURCES / "warranty.txt").read_text(encoding="ascii")
    assert squeezed(warranty) == pdf_text(WARRANTY.read_bytes())


def test_building_them_again_gives_the_same_bytes():
    assert build() == build()


def test_the_corpus_has_several_kinds_in_two_languages():
    files = [path for path in DOCUMENTS.rglob("*") if path.is_file()]
    assert {".md", ".html", ".txt", ".docx", ".pdf", ".jsonl"} == {p.suffix for p in files}
    texts = [p.read_text(encoding="utf-8") for p in files if p.suffix in {".md", ".html", ".txt"}]
    languages = [language_of(text) for text in texts]
    assert languages.count("en") >= 4
    assert sum(language != "en" for language in languages) >= 4


def test_news_are_passages_with_metadata():
    lines = (DOCUMENTS / "news.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line) for line in lines]
    assert len({passage["_id"] for passage in passages}) == len(passages)
    for passage in passages:
        assert {"source", "author", "published_at"} <= passage["metadata"].keys()


@pytest.mark.parametrize(
    ("place", "file", "said"),
    [
        (0, "finance/lanxing-2024-q2.md", "营业收入 3.86 亿元"),
        (1, "handbook/halden-h5.md", "Press and hold the button"),
        (2, "handbook/halden-h10.md", "only the H10 offers backup power"),
    ],
)
def test_every_question_of_the_demo_has_its_answer_in_the_corpus(place, file, said):
    text = (DOCUMENTS / file).read_text(encoding="utf-8")
    assert said in " ".join(text.split())
    asked = {word.normalised for word in content_words(QUESTIONS[place])}
    assert len(asked & {word.normalised for word in words(text)}) >= 3
