"""The question word of a query, Chinese ones mapped to the English."""

import re

_ENGLISH = re.compile(
    r"\b(?:(?P<how_many>how (?:many|much|long|far|old|tall|high|big|large|deep|fast|often|wide))"
    r"|(?P<when>when|(?:what|which) (?:year|date|day|month|time|century|decade))"
    r"|(?P<where>where(?!as|by)|(?:what|which) (?:country|city|state|place|continent|town|island))"
    r"|(?P<why>why|how come|what for|for what reason)"
    r"|(?P<who>who|whom|whose)|(?P<which>which)|(?P<how>how)|(?P<what>what))\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?P<how_many>多少|多久|多长|多大|多高|多远|多重|多深|第几"
    r"|几(?=[个位名次年天月种岁人条项所座本层家部届集支只张场章款]))"
    r"|(?P<when>什么时[候间]|何[时年]|哪一?[年天]|哪个?(?:月|朝代|世纪|年代|时期|时代)|几[月号]|啥时候)"
    r"|(?P<where>哪里|哪儿|何处|何地|什么地方|在哪|位于哪|哪个?(?:国家|城市|省|地区|县|国))"
    r"|(?P<why>为什么|为何|为啥|何以|何故|怎么会|因何|什么原因)"
    r"|(?P<who>谁|何人|什么人|哪位)"
    r"|(?P<which>哪[个些种家一几部款支所座本类]?)"
    r"|(?P<how>怎么|怎样|如何|咋|怎)"
    r"|(?P<what>什么|啥|何(?=[种谓为物事罪在]))"
)
_HEAD = re.compile(
    r"^\W*(?:(?:and|but|so|ok|hi|hello|please|tell me|explain|in|on|at|to|for|from|by|with|of|about"
    r"|during|under|after|before|since|until|between|do you know|can you tell me|i wonder)\W+)*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:.?!()\"]\s*(?:and |but |then |in |for |to |at |from |of |by )?$|^$")
_RELATIVE = frozenset({"who", "which", "when", "where", "what", "why"})


def question_word(text: str) -> str:
    """The first question word that asks; empty when there is none.

    An English word inside a sentence asks only where a clause begins or where it cannot be a
    relative pronoun: `the company which …` asks nothing, `numpy how to …` does.
    """
    head = _HEAD.match(text)
    begin = head.end() if head else 0
    english = None
    for match in _ENGLISH.finditer(text, begin):
        word = str(match.lastgroup)
        asks = match.start() == begin or word not in _RELATIVE
        if asks or _CLAUSE.search(text, 0, match.start()):
            english = match
            break
    chinese = _CHINESE.search(text)
    found = [match for match in (english, chinese) if match]
    return str(min(found, key=lambda match: match.start()).lastgroup) if found else ""
