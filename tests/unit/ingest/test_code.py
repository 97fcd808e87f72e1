"""Cutting program text: names, signatures and comments stay together, errors stop nothing."""

import pytest

from ingest.chunkers.code import CodeChunker
from ingest.types import ParsedDocument


def cut(text, language, max_chars=300):
    document = ParsedDocument("code", text=text, title="f", attributes={"language": language})
    return CodeChunker(CodeChunker.Config(max_chars=max_chars)).cut(document)


def symbols(cuts):
    return [c.attributes.get("symbol", "") for c in cuts]


WIDE = " " * 100 + "\n"


def three(pattern):
    return "".join(pattern.replace("#", str(i)) + WIDE for i in range(3))


PYTHON_METHOD = """\
    @cached
    def get#(self, key):
        'Look # up.'
        return #
"""
TYPESCRIPT_METHOD = """\
  /** Look # up. */
  get#(key: string): T { return this.all[#]; }
"""
JAVA_METHOD = """\
  // Look # up.
  public int get#(String key) { return #; }
"""
RUST_METHOD = """\
    /// Look # up.
    pub fn get#(&self) -> u32 { # }
"""
GO = """\
package a

type Store struct{}

// Get looks up.
func (s *Store) Get(k string) int {
\treturn 1
}
"""
CPP = f"""\
#include <a>
namespace n {{
/// Keeps.
class Store {{ int a; }};
int half(int x) {{ return x / 2; }}
// {"x" * 80}
// {"y" * 80}
// {"z" * 80}
}}
"""
METHODS = ["Store.get0", "Store.get1", "Store.get2"]
CLASSES = {
    "python": (
        "import os\n\nclass Store:\n    'Keeps.'\n" + three(PYTHON_METHOD),
        ["", "Store", *METHODS],
    ),
    "typescript": (
        "export class Store<T> {\n" + three(TYPESCRIPT_METHOD) + "}\n"
        "export const half = (x: number) => x / 2;\n",
        ["Store", *METHODS, "half"],
    ),
    "java": (
        "package a;\n/** Keeps. */\npublic class Store {\n" + three(JAVA_METHOD) + "}\n",
        ["", "Store", *METHODS],
    ),
    "rust": (
        "use std::fmt;\n/// Keeps.\npub struct Store;\nimpl Store {\n" + three(RUST_METHOD) + "}\n",
        ["", "Store", "Store", *METHODS],
    ),
    "go": (GO, ["", "Store", "Store.Get"]),
    "cpp": (CPP, ["", "n", "n.Store", "n.half", "n"]),
    "c": (
        "#include <a.h>\n/* Half of it. */\nstatic int half(int x) { return x / 2; }\n",
        ["", "half"],
    ),
    "javascript": ("import a from 'a';\n\nfunction half(x) { return x / 2; }\n", ["", "half"]),
}


@pytest.mark.parametrize("language", CLASSES)
def test_definitions_are_cut_with_their_names(language):
    text, expected = CLASSES[language]
    assert expected == symbols(cut(text, language))


@pytest.mark.parametrize("language", CLASSES)
def test_no_line_is_lost(language):
    text = CLASSES[language][0]
    together = "".join("".join(c.text.split()) for c in cut(text, language))
    lines = ["".join(line.split()).rstrip(";") for line in text.split("\n") if line.strip(" {};")]
    assert [] == [line for line in lines if line not in together]


def test_a_comment_goes_with_the_definition_below_it():
    [_, half] = cut(CLASSES["c"][0], "c")
    assert half.text.startswith("/* Half of it. */")


def test_a_syntax_error_does_not_stop_the_rest():
    cuts = cut("def broken():\n    x = = 1\n\n\ndef fine(a):\n    return a\n", "python")
    assert "fine" in symbols(cuts)


def test_a_long_function_repeats_its_signature():
    body = "".join(f"    x{i} = {i}\n" for i in range(100))
    cuts = cut(f"def long(a, b):\n{body}", "python")
    assert len(cuts) > 2
    assert all(c.text.startswith("def long(a, b):") for c in cuts)
