"""A cross-encoder behind vLLM's `score` endpoint."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError

from skills.errors import SkillFailed
from skills.http_json import ApiKey, JsonCall, JsonClient
from skills.resources import Resources
from skills.scorers.scorer import Scores


class _Row(BaseModel):
    index: int
    score: float


class _Answer(BaseModel):
    data: list[_Row]


_ANSWER = TypeAdapter(_Answer)


class VllmScorer:
    """Asks `POST {base_url}/score`, one query against a list of passages."""

    class Config(BaseModel):
        """Which server and which model."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        base_url: str
        """Without a path, or up to and including `/v1`."""
        model: str
        api_key: ApiKey = SecretStr("")
        max_tokens: int | None = None
        """Tokens of a pair that count; None leaves it to the server."""

    def __init__(self, config: Config, resources: Resources) -> None:
        self._config = config
        self._url = config.base_url.rstrip("/") + "/score"
        self._http = JsonClient()

    @property
    def id(self) -> str:
        """Names the model."""
        return self._config.model

    async def score(self, query: str, passages: Sequence[str], timeout_ms: float) -> Scores:
        """Score passages for one query; see `PairScorer.score`."""
        body: dict[str, object] = {
            "model": self._config.model,
            "text_1": query,
            "text_2": list(passages),
        }
        if self._config.max_tokens is not None:
            body["truncate_prompt_tokens"] = self._config.max_tokens
        key = self._config.api_key.get_secret_value()
        call = JsonCall("POST", self._url, body=body, api_key=key)
        answered = await self._http.send(call, timeout_ms)
        try:
            rows = sorted(_ANSWER.validate_python(answered).data, key=lambda row: row.index)
        except ValidationError as error:
            raise SkillFailed(self._url, f"answered no list of scores: {error}") from error
        if [row.index for row in rows] != list(range(len(passages))):
            raise SkillFailed(self._url, f"answered {len(rows)} scores for {len(passages)} texts")
        return np.array([row.score for row in rows], np.float32)
