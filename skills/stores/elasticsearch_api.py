"""The one place that opens connections to Elasticsearch, and what its errors are to us."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from skills.errors import (
    RequestInvalid,
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)

_RETRIED_READING = (502, 503, 504)
_TOO_BUSY = 429
_RETRIED_WRITING = (_TOO_BUSY, 502, 503, 504)
_WRITE_RETRIES = 6
_BACKOFF_CAP_S = 10.0


class ElasticsearchConnection(BaseModel):
    """Where the cluster is and how long to wait for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    """`https://host:9200`; several, separated by commas, are nodes of one cluster."""
    api_key: SecretStr | None = None
    username: str = ""
    password: SecretStr | None = None
    ca_certs: Path | None = None
    """Certificates to check the cluster's with, when the system's do not know it."""
    prefix: str = Field(default="tactician-", pattern=r"^([a-z0-9][a-z0-9_.\-]{0,99})?$")
    """Before the name of every index, so that installations can share a cluster."""
    timeout_s: float = Field(default=2.0, gt=0)
    """Of a call that reads."""
    write_timeout_s: float = Field(default=60.0, gt=0)
    """Of a call that writes one batch."""
    backoff_s: float = Field(default=0.5, gt=0)
    """Before a write that the cluster was too busy for is sent again; doubled each time."""
    shards: int = Field(default=1, ge=1)
    replicas: int = Field(default=1, ge=0)


class ElasticsearchApi:
    """Clients for readers and writers of one cluster."""

    def __init__(self, connection: ElasticsearchConnection) -> None:
        try:
            import elastic_transport
            import elasticsearch
            import elasticsearch.helpers
        except ImportError as error:
            raise SkillMisconfigured(
                "store", "Elasticsearch needs the extra tactician[elasticsearch]"
            ) from error
        self.connection = connection
        self._package: Any = elasticsearch
        self._transport: Any = elastic_transport
        self.reading: Any = elasticsearch.AsyncElasticsearch(
            **self._options(),
            request_timeout=connection.timeout_s,
            max_retries=1,
            retry_on_status=_RETRIED_READING,
        )

    def _options(self) -> dict[str, Any]:
        given = self.connection
        options: dict[str, Any] = {"hosts": given.url.split(",")}
        if given.api_key is not None:
            options["api_key"] = given.api_key.get_secret_value()
        if given.password is not None:
            options["basic_auth"] = (given.username, given.password.get_secret_value())
        if given.ca_certs is not None:
            options["ca_certs"] = str(given.ca_certs)
        return options

    def writing(self) -> Any:
        """A client for one writer: synchronous, patient, and repeating what the cluster was too
        busy for.
        """
        return self._package.Elasticsearch(
            **self._options(),
            request_timeout=self.connection.write_timeout_s,
            max_retries=_WRITE_RETRIES,
            retry_on_status=_RETRIED_WRITING,
            retry_on_timeout=True,
            retry_backoff_base=self.connection.backoff_s,
            retry_backoff_cap=_BACKOFF_CAP_S,
        )

    def bulk(self, client: Any, actions: Sequence[Mapping[str, Any]]) -> None:
        """Write actions; those that the cluster was too busy for are sent again, later each time.

        Raises:
            SkillRejected: it stayed too busy.
            SkillFailed: it refused one.
        """
        # The helper repeats what was refused only when it is told not to raise at once.
        _, refused = self._package.helpers.bulk(
            client,
            actions,
            max_retries=_WRITE_RETRIES,
            initial_backoff=self.connection.backoff_s,
            max_backoff=_BACKOFF_CAP_S,
            raise_on_error=False,
        )
        outcomes = [outcome for each in refused for outcome in each.values()]
        broken = [outcome for outcome in outcomes if outcome.get("status") != _TOO_BUSY]
        if broken:
            first = broken[0].get("error")
            raise SkillFailed("store", f"Elasticsearch refused a passage: {first}")
        if outcomes:
            raise SkillRejected("store", "Elasticsearch stayed too busy to write")

    async def close(self) -> None:
        """Close the reader's connections."""
        await self.reading.close()

    def is_conflict(self, error: Exception) -> bool:
        """Whether somebody else was there first."""
        return isinstance(error.__cause__, self._package.ConflictError)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the client's errors into ours."""
        place = self.connection.url
        try:
            yield
        except self._transport.ConnectionTimeout as error:
            raise SkillTimeout("store", f"{place} did not answer in time") from error
        except self._transport.TransportError as error:
            raise SkillUnavailable("store", f"{place} cannot be reached: {error}") from error
        except self._package.NotFoundError as error:
            raise RequestInvalid("collection", f"{place} does not have it: {error}") from error
        except self._package.ApiError as error:
            if error.meta.status == _TOO_BUSY:
                raise SkillRejected("store", f"{place} is overloaded: {error}") from error
            raise SkillUnavailable("store", f"{place} refused: {error}") from error
