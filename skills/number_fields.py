"""Numbers that a query gives for a field by name: `page 5`, `price under 300`, `电压低于 5`."""

import re
from collections.abc import Sequence

from skills.dated_fields import Reason
from skills.language import Number, numbers
from skills.stores.store import FieldSummary
from skills.types import Condition

_OPERATORS = {
    "lte": "at most|no more than|not more than|up to|<=|≤|不超过|至多|最多",
    "gte": "at least|no less than|not less than|>=|≥|不少于|不低于|至少|最少",
    "lt": "under|below|less than|smaller than|cheaper than|<|低于|少于|小于",
    "gt": "over|above|more than|greater than|larger than|>|高于|大于|超过",
}
_OPERATOR = "|".join(f"(?P<{name}>{words})" for name, words in _OPERATORS.items())
_LINK = r"[\s:：=\-]*(?:is|are|of|no\.?|number|为|是|第|在)?[\s:：=#]*"


def number_reasons(query: str, fields: Sequence[FieldSummary]) -> tuple[Reason, ...]:
    """The conditions that numbers beside a number field's name put on that field.

    The field's name may stand before the number (`page 5`) or after it (`under 300 grams weight`),
    an operator between or before them. A number without its field's name says nothing.
    """
    found = numbers(query)
    reasons = []
    for summary in fields:
        if summary.kind == "number" and len(summary.name) > 2:
            spoken = re.escape(summary.name.casefold()).replace("_", r"[\s_]")
            for number in found:
                condition = _condition(summary.name, spoken, query.casefold(), number)
                if condition is not None:
                    reasons.append(condition)
                    break
    return tuple(reasons)


def _condition(field: str, spoken: str, query: str, number: Number) -> Reason | None:
    name = rf"(?<![^\W_]){spoken}(?:s|es)?(?![^\W_])"
    before, after = query[: number.start], query[number.end :]
    match = re.search(rf"(?P<name>{name}){_LINK}(?:{_OPERATOR})?\s*$", before)
    start, end = number.start, number.end
    if match is None:
        follows = re.match(rf"\s*(?:of\s+|的)?{name}", after)
        match = re.search(rf"(?:{_OPERATOR})?\s*$", before)
        if match is None or follows is None:
            return None
        end += follows.end()
    start = match.start()
    operator = next((name for name in _OPERATORS if match[name]), None)
    words = query[start:end].strip()
    if operator is None:
        whole = int(number.value) if number.value == int(number.value) else number.value
        return Reason(Condition(field, any_of=(whole,)), words)
    bounds = {operator: number.value}
    return Reason(
        Condition(
            field,
            lte=bounds.get("lte"),
            gte=bounds.get("gte"),
            lt=bounds.get("lt"),
            gt=bounds.get("gt"),
        ),
        words,
    )
