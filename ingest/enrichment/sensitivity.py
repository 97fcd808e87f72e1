"""Whether a passage tells something about a person that not everybody may know.

A name alone is no secret, and neither is the telephone number of a help desk: both fill ordinary
documents, and a passage that is flagged is hidden from most callers. Flagged are identifiers that
belong to one person (identity, social security, passport, card and account numbers, with their
check digits verified where there are any), a private telephone number or address that is said to be
somebody's, and health or pay that is said of a person.
"""

import re
from collections.abc import Callable

import phonenumbers

from skills.language.script import HAN

_CHINESE_ID = re.compile(
    r"(?<!\d)[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])[0-3]\d{4}[\dXx](?!\d)"
)
_CARD = re.compile(r"(?<![\d.])(?:\d[ -]?){13,19}(?![\d.])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_PASSPORT = re.compile(r"(?:passport|护照)\D{0,20}\b[A-Z]{0,2}\d{7,9}\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d")

_SURNAME = (
    "[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢"
    "姜崔钟谭陆汪范石廖贾夏韦付邹孟熊秦邱江尹薛闫段雷侯史陶黎贺顾毛郝龚邵钱严覃武戴莫孔汤]"
)
_PERSON = (
    r"(?:\b(?:[Pp]atient|[Ee]mployee|[Cc]ustomer|[Aa]pplicant|Mr\.?|Mrs\.?|Ms\.?)"
    r"(?:\s+[Nn]ame)?\s*:?\s+[A-Z][a-z]+"
    rf"|{_SURNAME}[{HAN}]{{0,2}}(?:先生|女士|小姐)"
    rf"|(?:患者|病人|员工|客户|姓名)[:：]?\s*{_SURNAME}[{HAN}]{{1,2}})"
)
"""A person who is named: `the patient` of a statute is nobody."""
_HEALTH = (
    r"(?:\b(?:diagnos(?:ed|is)|HIV|cancer|depression|diabet\w+|pregnan\w+|prescri(?:bed|ption)|"
    r"blood test|medical record|psychiatr\w+)\b"
    r"|确诊|诊断为|病历|艾滋|癌|抑郁|糖尿病|怀孕|处方|化验)"
)
_PAY = r"(?:\b(?:salary|wage|payslip|net pay|credit score)\b|工资|薪资|月薪|年薪|征信)"
_CONTACT = (
    r"(?:\b(?:home|private|personal|mobile|cell)\s+(?:phone|number|address)\b|\bdate of birth\b|"
    r"\bhome address\b|家庭住址|住址|手机号|私人电话|出生日期|联系电话)"
)
_NEAR = 60
_OF_A_PERSON = re.compile(
    rf"{_PERSON}.{{0,{_NEAR}}}{_HEALTH}|{_HEALTH}.{{0,{_NEAR}}}{_PERSON}"
    rf"|{_PERSON}.{{0,{_NEAR}}}{_PAY}.{{0,30}}\d"
)
_CONTACT_OF = re.compile(rf"{_CONTACT}.{{0,30}}\d", re.IGNORECASE)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_REGIONS = ("CN", "US")


def is_sensitive(text: str) -> bool:
    """Whether the text holds an identifier of a person, or says something private of one."""
    if _DIGITS.search(text):
        for pattern, holds in _IDENTIFIERS:
            if any(holds(match[0]) for match in pattern.finditer(text)):
                return True
        if _PASSPORT.search(text) or _contact(text):
            return True
    return bool(_OF_A_PERSON.search(text))


def _contact(text: str) -> bool:
    """A telephone number that is valid where it would be dialled and is called somebody's own."""
    for match in _CONTACT_OF.finditer(text):
        around = text[match.start() : match.end() + 30]
        if any(phonenumbers.PhoneNumberMatcher(around, region).has_next() for region in _REGIONS):
            return True
        if re.search(r"birth|出生|address|住址", match[0], re.IGNORECASE):
            return True
    return False


def _is_chinese_id(number: str) -> bool:
    """GB 11643: the last character is a check sum of the others."""
    total = sum(int(d) * w for d, w in zip(number, _WEIGHTS, strict=False))
    return "10X98765432"[total % 11] == number[-1].upper()


def _is_card(number: str) -> bool:
    """ISO 7812: a known first digit and the Luhn check sum."""
    digits = [int(d) for d in number if d.isdigit()]
    if not 13 <= len(digits) <= 19 or digits[0] not in (2, 3, 4, 5, 6) or len(set(digits)) < 2:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _is_iban(number: str) -> bool:
    """ISO 13616: rearranged and read as a number, it leaves 1 when divided by 97."""
    plain = number.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


_IDENTIFIERS: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
    (_CHINESE_ID, _is_chinese_id),
    (_SSN, lambda _: True),
    (_CARD, _is_card),
    (_IBAN, _is_iban),
)
