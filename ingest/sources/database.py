"""Rows of a database: one row a passage, its fields weighted.

Rows are exported to a file of passages, which workers read like any other. With a column that tells
when a row changed, only rows that changed since the last run are fetched; of the others only the
keys are listed, to see which are gone.
"""

import datetime
import decimal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import parse_qs, urlsplit

import orjson
import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest.errors import IngestRejected, SourceUnavailable
from ingest.identity import digest
from ingest.sources.source import Listed
from ingest.types import Scope, Unit

_CHUNK = 1000
Weight = Literal[0, 1, 2, 3]


class DatabaseSettings(BaseModel):
    """Which rows, and how their columns become a passage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    """SQLAlchemy URL; its password appears in no passage, log or message."""
    table: str = ""
    query: str = ""
    """Instead of a table: a SELECT."""
    name: str = ""
    """What `db_table` says of rows of a query."""
    key: str = "id"
    updated_at: str = ""
    """Column with the time of a row's last change; enables fetching changes only."""
    weights: dict[str, Weight] = Field(default_factory=dict)
    """How often a column's words count: 3 a name, 1 a note (what is not named here), 0 only as an
    attribute to filter by."""

    @property
    def called(self) -> str:
        """Name of the table or query."""
        return self.table or self.name or f"query-{digest(self.query, size=4)}"


class DatabaseSource:
    """Rows of one table or query."""

    def __init__(self, settings: DatabaseSettings, exports: Path, watermark: str = "") -> None:
        """Connect when listed.

        Args:
            settings: what to read.
            exports: directory for the exported rows.
            watermark: largest `updated_at` of the last run; empty reads everything.

        Raises:
            IngestRejected: neither or both of table and query are given.
        """
        if bool(settings.table) == bool(settings.query):
            raise IngestRejected("database", "name a table or give a query, one of the two")
        self._settings = settings
        self._exports = exports
        self._since = watermark if settings.updated_at else ""
        self.watermark = watermark
        """Largest `updated_at` seen."""
        self.unchanged: list[str] = []
        """Ids of documents that exist and did not change since the watermark."""

    @property
    def uri(self) -> str:
        """Host, database and table, without user and password."""
        url = sa.engine.make_url(self._settings.url)
        place = f"{url.host or 'local'}{f':{url.port}' if url.port else ''}/{url.database or ''}"
        return f"{url.get_backend_name()}://{place.strip('/')}/{self._settings.called}"

    def list(self) -> Iterator[Listed]:
        """Export the rows and list the export."""
        self._exports.mkdir(parents=True, exist_ok=True)
        path = self._exports / f"{digest(self.uri, size=8)}.jsonl"
        partial = path.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                for row in self._rows():
                    file.write(orjson.dumps(self._passage(row)) + b"\n")
        except sa.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or type(error).__name__)
            raise SourceUnavailable(self.uri, f"cannot be read: {reason}") from error
        partial.replace(path)
        size = path.stat().st_size
        yield Listed(
            Unit(
                uri=self.uri,
                root=self.uri,
                size_bytes=size,
                modified_at=datetime.datetime.now(datetime.UTC).isoformat(),
                location=path.as_uri(),
                stop=size,
            )
        )

    @property
    def scope(self) -> Scope:
        """The table or query."""
        return Scope(self.uri, is_one=True)

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        settings = self._settings
        engine = sa.create_engine(settings.url)
        try:
            with engine.connect() as connection:
                everything = self._selected(engine)
                if self._since:
                    changed = self._changed(everything)
                    yield from _fetched(connection, everything.where(changed))
                    keys: sa.Select[Any] = everything.with_only_columns(sa.column(settings.key))
                    kept = keys.where(sa.not_(changed))
                    self.unchanged = [self._id(row) for row in _fetched(connection, kept)]
                else:
                    yield from _fetched(connection, everything)
        finally:
            engine.dispose()

    def _changed(self, selected: sa.Select[Any]) -> sa.ColumnElement[bool]:
        """Rows at or after the watermark, which is compared as the type that the column has."""
        column = selected.selected_columns.get(self._settings.updated_at)
        if column is None:  # of a query, whose types are not known
            return sa.column(self._settings.updated_at) >= self._since
        is_time = isinstance(column.type, sa.DateTime | sa.Date)
        return column >= (_time(self._since) if is_time else self._since)

    def _selected(self, engine: sa.Engine) -> sa.Select[Any]:
        if self._settings.query:
            inner = sa.text(self._settings.query).columns().subquery("q")
            return sa.select(sa.text("*")).select_from(inner)
        schema, _, name = self._settings.table.rpartition(".")
        table = sa.Table(name, sa.MetaData(), schema=schema or None, autoload_with=engine)
        return sa.select(table)

    def _id(self, row: Mapping[str, Any]) -> str:
        if self._settings.key not in row:
            raise IngestRejected("key", f"{self.uri} has no column {self._settings.key!r}")
        return f"{self._settings.called}/{row[self._settings.key]}"

    def _passage(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A passage in the form of the files that hold passages. A column of weight 2 is the
        title too, of weight 3 the heading as well: searches by word count each of them.
        """
        settings = self._settings
        values = {str(column): _value(value) for column, value in row.items()}
        updated = str(values.get(settings.updated_at) or "")
        self.watermark = max(self.watermark, updated)
        shown = sorted(
            (c for c, v in values.items() if v not in (None, "") and self._weight(c)),
            key=lambda c: -self._weight(c),
        )
        strong = [str(values[c]) for c in shown if self._weight(c) > 1]
        strongest = [str(values[c]) for c in shown if self._weight(c) > 2]
        return {
            "_id": self._id(row),
            "title": " ".join(strong),
            "text": "\n".join(f"{c}: {values[c]}" for c in shown),
            "metadata": {
                "source_type": "rows",
                "db_table": settings.called,
                "last_updated": updated,
                "heading_path": strongest,
                "attributes": {c: v for c, v in values.items() if v is not None},
            },
        }

    def _weight(self, column: str) -> int:
        default = 0 if column in (self._settings.key, self._settings.updated_at) else 1
        return self._settings.weights.get(column, default)


def database_settings(source: str) -> DatabaseSettings:
    """Settings out of one string: `postgresql://host/db#table=goods&key=sku&weights=name:3,note:1`.

    Raises:
        IngestRejected: a part after `#` is unknown or wrong.
    """
    url, _, fragment = source.partition("#")
    given: dict[str, Any] = {name: v[-1] for name, v in parse_qs(fragment).items()}
    try:
        pairs = [p.partition(":") for p in given.pop("weights", "").split(",") if p]
        weights = {name: int(weight or 1) for name, _, weight in pairs}
        return DatabaseSettings.model_validate({"url": url, "weights": weights, **given})
    except (ValueError, ValidationError) as error:
        name = urlsplit(url).scheme
        raise IngestRejected(f"{name} source", f"after `#`: {error}") from error


def _fetched(connection: sa.Connection, selected: sa.Select[Any]) -> Iterator[Mapping[str, Any]]:
    result = connection.execution_options(stream_results=True, yield_per=_CHUNK).execute(selected)
    yield from (cast("Mapping[str, Any]", row) for row in result.mappings())


def _time(watermark: str) -> object:
    return datetime.datetime.fromisoformat(watermark)


def _value(value: object) -> str | int | float | bool | None:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case decimal.Decimal():
            return int(value) if value == value.to_integral() else float(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | memoryview():
            return None
        case _:
            return str(value)
