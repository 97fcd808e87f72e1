"""A collection of which only the fields are known, for skills that read queries."""

import datetime
from dataclasses import dataclass

from skills.errors import RequestInvalid, SkillUnavailable
from skills.stores.store import CollectionInfo, FieldSummary
from skills.types import Condition, Hit, Passage

TODAY = datetime.date(2024, 5, 2)


def field(name, kind, *values, count=1000):
    return FieldSummary(name, kind, count, values)


FILINGS = (
    field("company", "keyword", "Apple", "Microsoft", "NVIDIA", "星河科技"),
    field("fiscal_year", "number", 2022, 2023),
    field("fiscal_quarter", "keyword", "Q1", "Q2", "Q3"),
    field("page", "number", *range(1, 60)),
    field("period_end", "time"),
)
NEWS = (
    field(
        "source",
        "keyword",
        "The Verge",
        "TechCrunch",
        "Fortune",
        "The Age",
        "FOX News - Health",
        "USA Today",
    ),
    field("category", "keyword", "sports", "technology"),
    field("author", "keyword", "Sarah Perez", "Kyle Bonn"),
    field("published_at", "time"),
    field("url", "keyword", *(f"https://news.example/{i}" for i in range(900))),
    field("tenant", "keyword", "Acme"),
    field("doc_type", "keyword", "Article"),
)
LAWS = (
    field("law", "keyword", "劳动法", "商标法", "民法典", "税"),
    field("heading_path", "keyword", "退货", "保修"),
)


@dataclass
class FakeKeywordStore:
    """Knows fields; of passages only which (year, quarter) periods there are."""

    fields: tuple[FieldSummary, ...]
    periods: tuple[tuple[int, str], ...] = ()
    asked: int = 0

    async def info(self, collection, version=""):
        if collection != "docs":
            raise RequestInvalid("collection", f"no collection {collection!r}")
        self.asked += 1
        return CollectionInfo("docs", version or "v1", 1000, 100, "", fields=self.fields)

    async def match(self, searches):
        return [self._rank(search) for search in searches]

    def _rank(self, search):
        wanted = {condition.field: condition.any_of for condition in search.filters.all_of}
        there = any(
            year in wanted["fiscal_year"] and quarter in wanted["fiscal_quarter"]
            for year, quarter in self.periods
        )
        return [Hit(Passage("p", "d", "x"), 1.0)] if there else []

    async def check_health(self):
        raise SkillUnavailable("store", "down")


class FakeResources:
    def __init__(self, store):
        self._store = store

    def keyword_store(self, name="default"):
        return self._store


def one_of(name, *values):
    return Condition(name, any_of=values)


def published(gte, lt):
    hour = "T00:00:00+00:00"
    return Condition("published_at", gte=gte and gte + hour, lt=lt and lt + hour)
