"""The words of a text: dictionary words for Han, runs of letters and digits otherwise."""

import re
import unicodedata
from dataclasses import dataclass

import rjieba

from skills.language.script import HAN

_RUN = re.compile(
    rf"(?P<han>[{HAN}]+)"
    r"|(?P<number>\d+(?:[.,]\d+)*(?![^\W_]))"
    rf"|(?P<word>(?:(?![{HAN}])[^\W_])+(?:['’](?:(?![{HAN}])[^\W\d_])+)*)"
)

_ENGLISH = """
a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each either few for from further had
has have having he her here hers him his how i if in into is it its itself just may me might more
most must my no nor not of off on once only or other our ours out over own same shall she should so
some such than that the their theirs them then there these they this those through to too under
until up upon us very was we were what when where whether which while who whom whose why will with
within without would you your yours
don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't i'm it's that's
there's what's who's i've we've you're they're
"""
_CHINESE = """
的 了 是 在 和 与 及 或 就 都 而 也 又 把 被 让 给 对 从 到 向 为 以 于 之 其 这 那 此 该 各 每
某 吗 呢 吧 啊 呀 么 嘛 地 得 着 过 等 们 我 你 您 他 她 它 我们 你们 他们 自己 这个 那个 这些
那些 这里 那里 什么 怎么 怎样 如何 为什么 为何 哪 哪个 哪些 哪里 哪儿 谁 多少 几 是否 能否 可否
有没有 是不是 可以 能 会 要 应 应该 需要 有 没有 没 不 还 还是 但 但是 如果 因为 所以 并 并且
以及 或者 关于 对于 请 请问 一 一个 一下 一些 上 下 中 里 个 时 时候 后 前 再 很 最 更 比 由 用
将 所 使 则 若 即 曾
"""
STOP_WORDS = frozenset((_ENGLISH + _CHINESE).split())
"""Words that say nothing about what a text is about, folded."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands."""

    text: str
    normalised: str
    start: int
    end: int

    @property
    def is_stop_word(self) -> bool:
        """Whether the word says nothing about the subject."""
        return self.normalised in STOP_WORDS


def folded(text: str) -> str:
    """The form in which texts are compared: NFKC, case folded, straight apostrophes, single
    spaces.
    """
    if text.isascii() and text.isalnum():  # most words of a query; a fifth of the time
        return text.lower()
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(plain.split())


def words(text: str) -> tuple[Word, ...]:
    """Cut a text into words, in order; punctuation and symbols are left out.

    A number keeps its decimal point and digit groups (`1,234.5`); a letter run keeps an inner
    apostrophe (`don't`), everything else splits it.
    """
    found: list[Word] = []
    for run in _RUN.finditer(text):
        if run.lastgroup == "han":
            found.extend(
                Word(piece, folded(piece), run.start() + start, run.start() + end)
                for piece, start, end in rjieba.tokenize(run[0])
            )
        else:
            found.append(Word(run[0], folded(run[0]), run.start(), run.end()))
    return tuple(found)


def content_words(text: str) -> tuple[Word, ...]:
    """The words of a text that are no stop words."""
    return tuple(word for word in words(text) if not word.is_stop_word)
