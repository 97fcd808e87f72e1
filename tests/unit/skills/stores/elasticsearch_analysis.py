"""Analysers as Elasticsearch has them, those that the store uses."""

import itertools
import json
import re
import unicodedata

from qdrant_edge import Bm25, Bm25Config, TokenizerType

from tests.unit.skills.stores.elasticsearch_refusals import Refused, known

HAN = "\u4e00-\u9fff"
TOKENS = re.compile(rf"(?P<ideographic>[{HAN}])|(?P<num>\d+(?:[.,]\d+)*(?![^\W{HAN}]))"
                    rf"|(?P<alphanum>(?:(?![{HAN}])[\w'])+)")  # fmt: skip
STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
STOP = frozenset(STOP_WORDS.split())
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
STEMS = Bm25(Bm25Config(tokenizer=TokenizerType.Whitespace, language="english"))


class Analysis:
    """Analysers as the index settings describe them."""

    def __init__(self, settings):
        known(settings, {"filter", "tokenizer", "analyzer"}, "analysis")
        self.settings = settings

    def tokens(self, analyzer, text):
        how = self.settings["analyzer"][analyzer]
        known(how, {"type", "tokenizer", "filter"}, analyzer)
        found = self.tokenize(how["tokenizer"], text)
        for name in how.get("filter", ()):
            found = self.filtered(name, found)
        return [token for token, _, _ in found]

    def tokenize(self, name, text):
        if name == "standard":
            found = TOKENS.finditer(text)
            return [(m[0], m.lastgroup, m.start()) for m in found]
        if name == "whitespace":
            return [(m[0], "word", m.start()) for m in re.finditer(r"\S+", text)]
        how = self.settings["tokenizer"][name]
        if how["type"] != "pattern":
            raise Refused(400, "illegal_argument_exception", f"tokenizer {how}")
        return [(part, "word", 0) for part in re.split(how["pattern"], text) if part]

    def filtered(self, name, tokens):
        how = self.settings["filter"].get(name, {"type": name})
        key = json.dumps(how, sort_keys=True)
        if key not in FILTERS:
            raise Refused(400, "illegal_argument_exception", f"unknown filter {how}")
        return list(FILTERS[key](tokens))


def bigrams(tokens):
    run = []
    for token, kind, position in [*tokens, ("", "end", -9)]:
        if kind == "ideographic" and (not run or position == run[-1][2] + 1):
            run.append((token, kind, position))
            continue
        if len(run) == 1:
            yield run[0]
        yield from ((a[0] + b[0], a[1], a[2]) for a, b in itertools.pairwise(run))
        run = [(token, kind, position)] if kind == "ideographic" else []
        if kind not in ("ideographic", "end"):
            yield token, kind, position


def parts(tokens):
    for token, kind, position in tokens:
        for part in dict.fromkeys([token, *PARTS.findall(token)]):
            yield part, kind, position


def each_token(change):
    return lambda tokens: [(change(token), kind, position) for token, kind, position in tokens]


def stem(word):
    found = STEMS.embed_query(word).indices
    return f"stem{found[0]}" if found and word.isascii() and word.isalpha() else word


FILTERS = {
    json.dumps(how, sort_keys=True): verb
    for how, verb in (
        ({"type": "cjk_width"}, each_token(lambda t: unicodedata.normalize("NFKC", t))),
        ({"type": "lowercase"}, each_token(str.lower)),
        ({"type": "keep_types", "types": ["<NUM>"], "mode": "exclude"},
         lambda tokens: [each for each in tokens if each[1] != "num"]),
        ({"type": "cjk_bigram"}, bigrams),
        ({"type": "stop", "stopwords": "_english_"},
         lambda tokens: [each for each in tokens if each[0] not in STOP]),
        ({"type": "stemmer", "language": "possessive_english"},
         each_token(lambda t: t.removesuffix("'s"))),
        ({"type": "stemmer", "language": "english"}, each_token(stem)),
        ({"type": "word_delimiter_graph", "preserve_original": True}, parts),
        ({"type": "flatten_graph"}, list),
    )
}  # fmt: skip
