"""An encoder behind an OpenAI-compatible embeddings endpoint: vLLM, TEI, a hosted model."""

from collections.abc import Sequence

import httpx
import numpy as np
import stamina
from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from skills.encoders.encoder import FloatArray, TextRole
from skills.encoders.vector_cache import VectorCache
from skills.errors import (
    SkillError,
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.resources import Resources


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]


_ANSWER = TypeAdapter(_Answer)
_RETRIED = frozenset({429, 500, 502, 503, 504})


class OpenAiEncoder:
    """Texts to vectors by `POST {base_url}/embeddings`. Safe to share by threads.

    Queries are asked for once, without waiting for a busy endpoint: a search has a budget and a
    fallback. Passages are asked for again when the endpoint is busy or away for a moment.
    """

    class Config(BaseModel):
        """Which endpoint, which model, and what the model wants to see before a text."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        base_url: str
        """Up to and including `/v1`."""
        model: str
        dim: int = Field(ge=1)
        """Length of its vectors; another length is an error."""
        api_key: SecretStr = SecretStr("")
        query_prefix: str = ""
        passage_prefix: str = ""
        ask_for_dim: bool = False
        """Send `dim` as `dimensions`, for models that can cut their vectors."""
        batch_size: int = Field(default=64, ge=1)
        """Texts a request."""
        query_timeout_s: float = Field(default=2, gt=0)
        passage_timeout_s: float = Field(default=60, gt=0)
        passage_attempts: int = Field(default=4, ge=1)
        query_cache_size: int = Field(default=4096, ge=0)

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._queries = VectorCache(config.query_cache_size)
        key = config.api_key.get_secret_value()
        self._http = httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})
        self._url = config.base_url.rstrip("/") + "/embeddings"

    @property
    def id(self) -> str:
        """Names the vector space: the model, its length and what it sees before a text."""
        config = self._config
        prefixes = f"{config.query_prefix}|{config.passage_prefix}"
        return f"openai:{config.model}@{config.dim}" + (f":{prefixes}" if prefixes != "|" else "")

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._config.dim

    def encode(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """Embed texts; see `TextEncoder.encode`.

        Raises:
            SkillTimeout: no answer in time.
            SkillRejected: the endpoint is overloaded or the quota is used up (429).
            SkillMisconfigured: it refuses the key, the model or the request (4xx).
            SkillUnavailable: it cannot be reached or fails (5xx).
            SkillFailed: it answers something that is not one finite vector a text.
        """
        if role == "query":
            return self._queries.vectors(texts, self._embed_queries)
        prefixed = [self._config.passage_prefix + text for text in texts]
        return self._in_batches(
            prefixed, self._config.passage_timeout_s, self._config.passage_attempts
        )

    def _embed_queries(self, texts: Sequence[str]) -> FloatArray:
        prefixed = [self._config.query_prefix + text for text in texts]
        return self._in_batches(prefixed, self._config.query_timeout_s, 1)

    def _in_batches(self, texts: Sequence[str], timeout_s: float, attempts: int) -> FloatArray:
        size = self._config.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        rows = [self._embed(batch, timeout_s, attempts) for batch in batches]
        return np.concatenate([np.empty((0, self.dim), np.float32), *rows])

    def _embed(self, texts: Sequence[str], timeout_s: float, attempts: int) -> FloatArray:
        body: dict[str, object] = {"model": self._config.model, "input": list(texts)}
        if self._config.ask_for_dim:
            body["dimensions"] = self.dim
        try:
            for attempt in stamina.retry_context(
                on=_wait, attempts=attempts, timeout=attempts * timeout_s
            ):
                with attempt:
                    answer = self._http.post(self._url, json=body, timeout=timeout_s)
                    answer.raise_for_status()
        except httpx.HTTPError as error:
            raise self._translated(error) from error
        return self._unit_rows(answer.content, len(texts))

    def _unit_rows(self, content: bytes, count: int) -> FloatArray:
        try:
            rows = sorted(_ANSWER.validate_json(content).data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], np.float32)
        except (ValidationError, ValueError) as error:
            raise SkillFailed(self._url, f"answered no list of embeddings: {error}") from error
        if [row.index for row in rows] != list(range(count)) or vectors.shape != (count, self.dim):
            raise SkillFailed(
                self._url, f"answered vectors {vectors.shape} for {count} texts of {self.dim}"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise SkillFailed(self._url, "answered a vector that is zero or not finite")
        unit: FloatArray = vectors / lengths
        return unit

    def _translated(self, error: httpx.HTTPError) -> SkillError:
        if isinstance(error, httpx.TimeoutException):
            return SkillTimeout(self._url, f"no answer in time: {error!r}")
        if not isinstance(error, httpx.HTTPStatusError):
            return SkillUnavailable(self._url, f"cannot be reached: {error!r}")
        status, said = error.response.status_code, error.response.text[:500]
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return SkillRejected(self._url, f"overloaded or over quota (429): {said}")
        if error.response.is_client_error:
            return SkillMisconfigured(
                self._url, f"refuses the request ({status}); check base_url, model, api_key: {said}"
            )
        return SkillUnavailable(self._url, f"fails ({status}): {said}")


def _wait(error: Exception) -> bool | float:
    """Whether to ask again after an error, or how many seconds to wait before."""
    if isinstance(error, httpx.HTTPStatusError):
        if error.response.status_code not in _RETRIED:
            return False
        named = error.response.headers.get("retry-after", "")
        return min(float(named), 30.0) if named.isdecimal() else True
    return isinstance(error, httpx.TransportError)
