"""Dates in a text: days, months, quarters and years, absolute or relative to a given day."""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

DateKind = Literal["day", "month", "quarter", "year"]


@dataclass(frozen=True, slots=True)
class DateMention:
    """One date and where it stands."""

    text: str
    normalised: str
    """`2023`, `2023-Q3`, `2023-10`, `2023-10-18`; `Q3` for a quarter of an unsaid year."""
    start: int
    end: int
    kind: DateKind


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
            "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8}
_DIGITS |= {"九": 9, "两": 2}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4}
_ORDINALS |= {"4th": 4, "final": 4, "last": 4}

_MONTH = r"(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d)"
_SHORT_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d|\d\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_ZH_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d|[一二][〇零一二三四五六七八九]{3})"
_ZH_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_ZH_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_ORDINAL = r"(?P<ordinal>first|second|third|fourth|1st|2nd|3rd|4th)"
_FISCAL = r"(?:(?:the\s+)?(?:fiscal\s+(?:years?\s+)?|financial\s+years?\s+|years?\s+|FY\s?'?))"
_ZH_FISCAL = r"(?:财年|年度|年)?的?\s*"
_OF = r"(?:\s*(?:,|of|in|for)?\s+)"
_L, _R = r"(?<![A-Za-z0-9_.])", r"(?![A-Za-z0-9_%])"

_ABSOLUTE: tuple[tuple[DateKind, str], ...] = (
    ("day", rf"{_L}{_YEAR}[-/.](?P<month>0?[1-9]|1[0-2])[-/.]{_DAY}(?:T[\d:.+Z-]+)?(?!\d)"),
    ("day", rf"{_L}(?P<month>0?[1-9]|1[0-2])/{_DAY}/{_YEAR}{_R}"),
    ("day", rf"{_L}{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?,?\s+{_YEAR}{_R}"),
    ("day", rf"{_L}{_DAY}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}{_R}"),
    ("day", rf"{_ZH_YEAR}\s*年\s*{_ZH_MONTH}\s*月\s*{_ZH_DAY}\s*[日号]"),
    ("quarter", rf"{_ZH_YEAR}\s*{_ZH_FISCAL}第?\s*(?P<quarter>[1-4一二三四])\s*个?季度?"),
    ("quarter", rf"{_ZH_YEAR}\s*{_ZH_FISCAL}[Qq](?P<quarter>[1-4]){_R}"),
    ("quarter", rf"{_L}(?:{_FISCAL})?{_YEAR}\s*['’]?s?[-_,/ ]*Q(?P<quarter>[1-4]){_R}"),
    ("quarter", rf"{_L}Q(?P<quarter>[1-4])(?:[-_/]|{_OF}|\s*){_FISCAL}?'?{_SHORT_YEAR}{_R}"),
    ("quarter", rf"{_L}(?P<quarter>[1-4])Q\s*(?:FY)?\s*'?{_SHORT_YEAR}{_R}"),
    ("quarter", rf"{_L}{_ORDINAL}[\s-]+(?:fiscal\s+)?quarter{_OF}{_FISCAL}?{_YEAR}{_R}"),
    ("quarter", rf"{_L}(?:{_FISCAL})?{_YEAR}(?:['’]s)?,?\s+{_ORDINAL}[\s-]+quarter{_R}"),
    ("month", rf"{_L}{_YEAR}[-/](?P<month>0[1-9]|1[0-2])(?![\w-])"),
    ("month", rf"{_L}{_MONTH},?{_OF}?\s*{_YEAR}{_R}"),
    ("month", rf"{_ZH_YEAR}\s*年\s*{_ZH_MONTH}\s*月(?:份)?"),
    ("year", rf"{_ZH_YEAR}\s*(?:财年|年度|年)"),
    ("year", rf"(?<![A-Za-z])FY\s?'?{_SHORT_YEAR}{_R}"),
    (
        "year",
        rf"{_L}(?<![$€£¥#,])(?:(?<!-)|(?<=\d{{4}}-))(?:{_FISCAL})?{_YEAR}(?:['’]s)?"
        r"(?![A-Za-z0-9_%]|[.,:/]\d|-(?!(?:1[5-9]|20)\d\d\b)\w)",
    ),
    ("quarter", rf"{_L}Q(?P<quarter>[1-4]){_R}"),
    ("quarter", rf"{_L}{_ORDINAL}[\s-]+(?:fiscal\s+)?quarter{_R}"),
    ("quarter", r"第\s*(?P<quarter>[1-4一二三四])\s*季度|(?P<ordinal>[一二三四])季度"),
)  # fmt: skip
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _ABSOLUTE)
_NO_DATE_WITHOUT = re.compile(r"\d|[年月季]|quarter", re.IGNORECASE)
_JOINED = re.compile(
    r"\s*(?:,|、|/|&|-|–|and|or|to|vs\.?|versus|with|through|和|与|跟|及|至|到|或)\s*"
)

_LATEST = re.compile(
    r"\b(?:latest|newest|most recent|most current|up[- ]to[- ]date)\b|最新|最近一?[期次版季年月]",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?P<en>last|previous|prior|past|this|current|next)\s+(?P<en_unit>year|quarter|month)\b"
    r"|\b(?P<en_day>yesterday|today|tomorrow)\b"
    r"|\b(?P<en_count>\d{1,3}|one|two|three|four|five|six|a|an)\s+"
    r"(?P<en_ago>year|quarter|month|day)s?\s+ago\b"
    r"|(?P<zh>上一?个?|本|这个?|下一?个?)(?P<zh_unit>季度|月|年度)(?!\w*年)"
    r"|(?P<zh_day>前年|去年|今年|明年|前天|昨天|今天|明天)"
    r"|(?P<zh_count>\d{1,3}|[一两二三四五六七八九十])个?(?P<zh_ago>年|季度|月|天|日)(?:以前|之前|前)",
    re.IGNORECASE,
)
_SHIFTS = {"last": -1, "previous": -1, "prior": -1, "past": -1, "next": 1, "上": -1, "下": 1}
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "十": 10,
}
_DAYS: dict[str, tuple[DateKind, int]] = {
    "yesterday": ("day", -1), "today": ("day", 0), "tomorrow": ("day", 1), "前天": ("day", -2),
    "昨天": ("day", -1), "今天": ("day", 0), "明天": ("day", 1), "前年": ("year", -2),
    "去年": ("year", -1), "今年": ("year", 0), "明年": ("year", 1),
}  # fmt: skip
_UNITS: dict[str, DateKind] = {
    "year": "year", "quarter": "quarter", "month": "month", "day": "day", "年": "year",
    "年度": "year", "季度": "quarter", "月": "month", "天": "day", "日": "day",
}  # fmt: skip


def dates(text: str, today: datetime.date | None = None) -> tuple[DateMention, ...]:
    """Find dates, in order, without overlaps; the more precise reading wins.

    In a list of quarters the unsaid year is taken from the neighbour (`Q1 and Q2 of 2023` are
    2023-Q1 and 2023-Q2). `10/11/2023` is read month first. Dates that do not exist are left out.

    Args:
        text: any text.
        today: what `last quarter`, `去年` or `3 days ago` are counted from; without it relative
            dates are left out.
    """
    found: list[DateMention] = []
    for mention in _candidates(text, today):
        if all(mention.end <= other.start or mention.start >= other.end for other in found):
            found.append(mention)
    found.sort(key=lambda mention: mention.start)
    return tuple(_with_neighbours_year(text, found))


def asks_for_latest(text: str) -> bool:
    """Whether the text wants the newest there is (`most recent filing`, `最新版本`)."""
    return _LATEST.search(text) is not None


def day_range(normalised: str) -> tuple[str, str]:
    """The days that a normalised date covers.

    Returns:
        First day and the day after the last, as ISO dates: a half-open interval.

    Raises:
        ValueError: the date has no year (`Q3`), or is no normalised date.
    """
    year, _, rest = normalised.partition("-")
    if not rest:
        first, months = datetime.date(int(year), 1, 1), 12
    elif rest.startswith("Q"):
        first, months = datetime.date(int(year), 3 * int(rest[1:]) - 2, 1), 3
    elif "-" not in rest:
        first, months = datetime.date(int(year), int(rest), 1), 1
    else:
        day = datetime.date.fromisoformat(normalised)
        return day.isoformat(), (day + datetime.timedelta(days=1)).isoformat()
    return first.isoformat(), _months_later(first, months).isoformat()


def _candidates(text: str, today: datetime.date | None) -> Iterator[DateMention]:
    for kind, pattern in _PATTERNS if _NO_DATE_WITHOUT.search(text) else ():
        for match in pattern.finditer(text):
            normalised = _normalised(kind, match)
            if normalised:
                yield DateMention(match[0], normalised, match.start(), match.end(), kind)
    if today is not None:
        for match in _RELATIVE.finditer(text):
            kind, shift = _shift(match)
            normalised = _shifted(today, kind, shift)
            yield DateMention(match[0], normalised, match.start(), match.end(), kind)


def _normalised(kind: DateKind, match: re.Match[str]) -> str:
    parts = match.groupdict()
    year = _year(parts["year"]) if parts.get("year") else 0
    if kind == "quarter":
        number = parts.get("quarter") or parts.get("ordinal") or ""
        quarter = _ORDINALS.get(number.casefold()) or _integer(number)
        return f"{year:04d}-Q{quarter}" if year else f"Q{quarter}"
    if kind == "year":
        return f"{year:04d}"
    name = parts["month"].casefold()
    month = _MONTHS.get(name) or _integer(name)
    if kind == "month":
        return f"{year:04d}-{month:02d}"
    try:
        return datetime.date(year, month, _integer(parts["day"])).isoformat()
    except ValueError:
        return ""


def _year(digits: str) -> int:
    if not digits[0].isascii():
        return int("".join(str(_DIGITS[digit]) for digit in digits))
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def _integer(numeral: str) -> int:
    """Up to 99, in digits or Chinese numerals."""
    if numeral.isascii():
        return int(numeral)
    if "十" not in numeral:
        return _DIGITS[numeral]
    tens, _, ones = numeral.partition("十")
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _with_neighbours_year(text: str, found: list[DateMention]) -> Iterator[DateMention]:
    for i, mention in enumerate(found):
        if mention.kind == "quarter" and mention.normalised.startswith("Q"):
            left, right = _year_of(found, text, i, -1), _year_of(found, text, i, 1)
            year_first = i > 0 and found[i - 1].text[0].isdecimal()
            year = (left or right) if year_first else (right or left)
            yield replace(mention, normalised=f"{year}-{mention.normalised}") if year else mention
        else:
            yield mention


def _year_of(found: list[DateMention], text: str, i: int, step: int) -> str:
    """The year of the nearest neighbour in the same enumeration of quarters."""
    while 0 <= i + step < len(found):
        left, right = sorted((found[i], found[i + step]), key=lambda mention: mention.start)
        if not _JOINED.fullmatch(text, left.end, right.start):
            return ""
        i += step
        if found[i].kind == "quarter" and not found[i].normalised.startswith("Q"):
            return found[i].normalised[:4]
        if found[i].kind != "quarter":
            return ""
    return ""


def _shift(match: re.Match[str]) -> tuple[DateKind, int]:
    parts = {name: part.casefold() for name, part in match.groupdict().items() if part}
    day = parts.get("en_day") or parts.get("zh_day")
    if day:
        return _DAYS[day]
    ago = parts.get("en_ago") or parts.get("zh_ago")
    if ago:
        count = parts.get("en_count") or parts["zh_count"]
        number = int(count) if count.isdecimal() else _COUNTS.get(count) or _integer(count)
        return _UNITS[ago], -number
    if "en" in parts:
        return _UNITS[parts["en_unit"]], _SHIFTS.get(parts["en"], 0)
    return _UNITS[parts["zh_unit"]], _SHIFTS.get(parts["zh"][0], 0)


def _shifted(today: datetime.date, kind: DateKind, shift: int) -> str:
    first = today.replace(day=1)
    shifters: dict[DateKind, Callable[[], str]] = {
        "year": lambda: f"{today.year + shift:04d}",
        "quarter": lambda: _quarter(_months_later(first, 3 * shift)),
        "month": lambda: _months_later(first, shift).isoformat()[:7],
        "day": lambda: (today + datetime.timedelta(days=shift)).isoformat(),
    }
    return shifters[kind]()


def _quarter(day: datetime.date) -> str:
    return f"{day.year:04d}-Q{(day.month + 2) // 3}"


def _months_later(first: datetime.date, months: int) -> datetime.date:
    total = first.year * 12 + first.month - 1 + months
    return datetime.date(total // 12, total % 12 + 1, 1)
