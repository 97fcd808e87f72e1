"""Numbers with their units, Chinese and English, as values that can be compared."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skills.language.codes import codes
from skills.language.dates import dates
from skills.language.units import UNITS

_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "trillion": 1e12, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5,
    "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9, "百亿": 1e10, "千亿": 1e11, "万亿": 1e12,
}  # fmt: skip
_SYMBOLS = "$€£¥￥"


def _alternatives(names: list[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_LATIN_SCALES = _alternatives([scale for scale in _SCALES if scale.isascii()])
_HAN_SCALES = _alternatives([scale for scale in _SCALES if not scale.isascii()])
_LATIN_UNITS = _alternatives([unit for unit in UNITS if unit.isascii() and unit.isalnum()])
_OTHER_UNITS = _alternatives([unit for unit in UNITS if not (unit.isascii() and unit.isalnum())])
_HAN_DIGITS = "零〇一二两三四五六七八九"
_NUMERAL = rf"[{_HAN_DIGITS}十百千万亿]+(?:点[{_HAN_DIGITS}]+[百千万亿]*)?"

_NUMBER = re.compile(
    rf"(?P<percent>百分之)?(?P<symbol>US\$|[{_SYMBOLS}])?\s?(?<![A-Za-z0-9_.])"
    r"(?P<sign>[-−])?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|(?<!\d)\.\d+)"
    rf"(?:(?:[\s-]?(?P<scale>{_LATIN_SCALES})(?![A-Za-z0-9]))|\s?(?P<han_scale>{_HAN_SCALES}))?"
    rf"(?:[\s-]?(?P<unit>{_LATIN_UNITS})(?![A-Za-z0-9])|\s?(?P<other_unit>{_OTHER_UNITS}))?",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    rf"(?P<percent>百分之)?(?P<numeral>{_NUMERAL})(?P<unit>{_OTHER_UNITS})?(?![{_HAN_DIGITS}])"
)


@dataclass(frozen=True, slots=True)
class Number:
    """One number, its unit, and where they stand."""

    text: str
    normalised: str
    """`15 %`, `12900000000 USD`, `3.5 GHz`, `42`."""
    start: int
    end: int
    value: float
    """With `billion`, `万` and the like multiplied out."""
    unit: str
    """One name for all spellings of a unit; empty when there is none."""


def numbers(text: str, *, taken: Iterable[tuple[int, int]] | None = None) -> tuple[Number, ...]:
    """Find numbers with their units, in order. What belongs to a date or a code is none.

    Args:
        text: any text.
        taken: where its dates and codes stand, from a caller that has found them already.

    Chinese numerals count when a unit or a place value (十, 百, 千 …) shows that they are
    numbers: 三百, 百分之五, 两年; not the 一 of 统一.
    """
    if taken is None:
        taken = [(date.start, date.end) for date in dates(text)]
        taken += [(code.start, code.end) for code in codes(text)]
    taken = list(taken)
    found: list[Number] = []
    for pattern, read in ((_NUMBER, _latin), (_CHINESE, _chinese)):
        for match in pattern.finditer(text):
            number = read(match)
            if number and all(number.end <= start or number.start >= end for start, end in taken):
                found.append(number)
                taken.append((number.start, number.end))
    return tuple(sorted(found, key=lambda number: number.start))


def _latin(match: re.Match[str]) -> Number | None:
    value = float(match["digits"].replace(",", "")) * (-1 if match["sign"] else 1)
    scale = (match["scale"] or match["han_scale"] or "").lower()
    unit = match["unit"] or match["other_unit"] or match["symbol"] or ""
    if scale in {"m", "b"} and not match["symbol"]:
        scale, unit = "", scale  # $5m is five million, 5 m is a length
    value *= _SCALES.get(scale, 1)
    return _number(match, value, "%" if match["percent"] else UNITS.get(unit.lower(), ""))


def _chinese(match: re.Match[str]) -> Number | None:
    numeral, unit = match["numeral"], match["unit"] or ""
    counts = len(numeral) > 1 and re.search(r"[十百千万亿点]", numeral)
    if not (counts or match["percent"] or unit) or numeral[0] in "百千万亿":
        return None
    if not counts and unit in {
        "人",
        "个",
        "条",
        "名",
        "次",
        "款",
        "项",
        "件",
        "日",
        "度",
        "块",
        "寸",
    }:
        return None  # 一个, 一次, 一日: articles more often than numbers
    value = _value(numeral)
    return _number(match, value, "%" if match["percent"] else UNITS.get(unit, ""))


def _number(match: re.Match[str], value: float, unit: str) -> Number:
    text = match[0].strip()
    start = match.start() + match[0].index(text)
    plain = f"{value:.10g}" if abs(value) < 1e10 or value % 1 else f"{int(value)}"
    return Number(text, f"{plain} {unit}".strip(), start, start + len(text), value, unit)


def _value(numeral: str) -> float:
    """Read a Chinese numeral: 三百二十 is 320, 一万二千 is 12,000, 三点五亿 is 350,000,000."""
    whole, _, decimals = numeral.partition("点")
    fraction = decimals.rstrip("百千万亿")
    scale = _SCALES.get(decimals[len(fraction) :], 1)
    tail = "".join(str(_HAN_VALUES[digit]) for digit in fraction)
    return float(f"{_whole(whole)}.{tail or 0}") * scale


def _whole(numeral: str) -> int:
    total = section = digit = 0
    for character in numeral:
        if character in _PLACES:
            section += (digit or 1) * _PLACES[character]
            digit = 0
        elif character == "万":
            total += (section + digit or 1) * 10_000
            section = digit = 0
        elif character == "亿":
            total = (total + section + digit or 1) * 100_000_000
            section = digit = 0
        else:
            digit = 10 * digit + _HAN_VALUES[character]
    return total + section + digit


_PLACES = {"十": 10, "百": 100, "千": 1000}
_HAN_VALUES = {character: value for value, character in enumerate("零一二三四五六七八九")}
_HAN_VALUES |= {"〇": 0, "两": 2}
