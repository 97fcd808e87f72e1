"""What kind of answer a query wants, by rules.

Each list holds one regular expression a line, for text in lower case; an English line matches at
word boundaries where it begins or ends with a letter or a group.
"""

import re
from dataclasses import dataclass

from policies.types import Intent
from skills.language.script import HAN

_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True)
class _Cues:
    """Expressions of one intent. Chinese ones are tried only where there is Chinese: it halves the
    time.
    """

    english: re.Pattern[str]
    chinese: re.Pattern[str] | None

    def found(self, text: str, *, has_han: bool) -> bool:
        return bool(
            self.english.search(text) or (has_han and self.chinese and self.chinese.search(text))
        )


def _cues(lines: str) -> _Cues:
    english, chinese = [], []
    for line in lines.strip().splitlines():
        if _HAN.search(line):
            chinese.append(line)
            continue
        first = r"\b" if re.match("[a-z(]", line) else ""
        last = r"\b" if re.search("[a-z)]$", line) else ""
        english.append(f"{first}(?:{line}){last}")
    return _Cues(re.compile("|".join(english)), re.compile("|".join(chinese)) if chinese else None)


_COMPARISON = _cues(r"""
vs\.?
versus
compar(?:e[ds]?|ing|ison|ative)
differences? (?:between|of|in)
differ(?:s|ent from)?
distinguish
(?:better|worse|faster|cheaper|safer|larger|bigger|smaller|older|more \w+|less \w+) than
pros and cons
consisten(?:t|cy) (?:with|between|in)
contrast\w*
similarit(?:y|ies)
in common
the same as
which (?:one )?(?:is|are|has|was|did|does) (?:the )?(?:more|better|faster|larger|cheaper|higher)
区别|差异|差别|对比|异同|优劣|优缺点|相比|孰
比较(?!好|大|高|多|常|适合)
不同之处|(?:何|什么|哪些|啥)不同|有不同
哪个更|谁更|哪(?:个|款|种)好
还是.{1,12}(?:更|好|快|强|省)
""")
_SUMMARY = _cues(r"""
summar(?:y|i[sz]e|i[sz]ing|ies)
overview
main (?:points?|ideas?|findings|topics|themes|arguments)
key (?:points|takeaways|findings)
outline
recap
gist
tl;?dr
highlights of
briefly (?:describe|introduce|present)
tell me about
plot of
总结|概括|概述|综述|摘要|简述|概要|梗概|归纳|大意|要点
主要(?:内容|观点|讲|剧情|情节)
介绍(?:一下|下)|简要介绍|简介
""")
_HOW_TO = _cues(r"""
how to
how (?:do|can|should|could|would|might) (?:i|you|we|one|someone)
(?:steps?|ways?|guide|tutorial|instructions|procedure|recipe|best practice) (?:to|for)
ways? of \w+ing
(?:can|could|may) (?:i|we|you)
(?:is there|are there) (?:a|any|some) (?:\w+ )?ways?
(?:is it possible|possible) (?:for \w+ )?to
ways? to \w+
i (?:want|need|wish|would like|am trying|'m trying|cannot|can't) (?:to )?
(?:help me|walk me through|show me how)
怎么(?!样的|会|回事|看|了|理解)|咋(?!回事)
如何(?!评价|看待|影响|理解)
怎样(?!的)
步骤|教程|做法|操作方法|设置方法|办理流程
""")
_DEFINITION = _cues(r"""
^\W*what(?:['’]s| is| are| was)(?: meant by)? (?:an? |the )?[\w\-.+#/ ]{1,40}\??\s*$
^\W*who(?:['’]s| is| was) [\w\-. ]{1,30}\??\s*$
defin(?:e|ition)
(?:meaning|concept) of
what (?:does|do|did) .{1,60} (?:mean|stand for|refer to)
what is meant
stands? for
^\W*what (?:kind|type|sort) of (?:\w+ ){1,3}(?:is|are)
什么是|何谓|何为|含义|定义|的概念
是什么(?:意思|东西|[？?]?\s*$)
(?:是指|指的?是?)什么
意思(?:是|[？?]?\s*$)
""")
_NO_DEFINITION = _cues(r"""
(?:name|number|population|capital|cost|price|date|year|size|age|height|length|purpose|total|amount|rate)
(?:effect|impact|role|cause|reason|result|most|best|largest|first|last|average|percentage)s?
(?:名字|名称|全称|原名|别名|面积|人口|首都|年份|时间|作者|主角|职业|职务|成绩|结果)是什么
(?:原因|目的|作用|影响|条件|后果|标准|处罚|程序)是什么
""")
_OPEN = _cues(r"""
why
(?:effect|impact|influence|implication|consequence|cause|reason)s? (?:of|for|behind|on|in)
(?:advantage|disadvantage|benefit|risk|challenge)s? (?:of|for|in)
(?:role|significance|importance) (?:of|for|in)
(?:explain|discuss|analy[sz]e|evaluate|describe|elaborate)
(?:opinions?|thoughts|views?) (?:on|about|of)
think (?:of|about)
how (?:does|do|did|has|have|is|are|was|were|will|might|would|can|could)
what (?:happens|happened|caused|makes|led)
为什么|为何|为啥|怎么(?:看|回事|会)
影响|原因|意义|看法|看待|评价|分析|探讨|谈谈|论述|说明|理解|作用|后果|前景|建议|趋势
""")
_FACTUAL = frozenset({"who", "when", "where", "how_many", "which"})
_CUES = {
    "comparison": _COMPARISON,
    "summary": _SUMMARY,
    "how_to": _HOW_TO,
    "definition": _DEFINITION,
    "no_definition": _NO_DEFINITION,
    "open": _OPEN,
}
_ORDER = (
    ("comparison", Intent.COMPARISON),
    ("summary", Intent.SUMMARY),
    ("how_to", Intent.HOW_TO),
)


def cues_in(text: str) -> frozenset[str]:
    """Names of the lists of expressions of which the text has one."""
    lowered = text.lower()
    has_han = _HAN.search(text) is not None
    return frozenset(n for n, cues in _CUES.items() if cues.found(lowered, has_han=has_han))


def intent_by(cues: frozenset[str], question: str) -> Intent:
    """The first of: comparison, summary, how-to, definition, a question for a fact, an open one.

    Args:
        cues: see `cues_in`.
        question: its question word, see `question_word`.
    """
    for name, intent in _ORDER:
        if name in cues:
            return intent
    if "definition" in cues and "no_definition" not in cues:
        return Intent.DEFINITION
    if question in _FACTUAL:
        return Intent.FACT
    return Intent.OPEN_ENDED if "open" in cues else Intent.FACT
