"""The learned_rank skill: candidates in the order that a ranker learnt from judgments.

The ranker is a file that `tactician train ranker` writes. A new file is used from the next request
that no remembered result answers. One that was trained on too few labels, or did not win on queries
that it had not seen, is never used.
"""

import datetime
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from skills.call_params import params_of
from skills.errors import SkillError, SkillMisconfigured, SkillTimeout, SkillUnavailable
from skills.ranking_features import FEATURES, feature_rows
from skills.ranking_model import RankerCard, RankingModel, load_ranker
from skills.resources import Resources
from skills.skill import SkillRequest, SkillResult
from skills.stores.store import FloatArray
from skills.types import Dropped, Hit, Provenance

RANKER = Path("rankers") / "current.zip"
"""What the skill looks for in the home directory."""
MIN_LABELS = 500
_PARTS = 8
"""Features named beside a hit: those that moved its score most."""
_EXPLAINED = 20
"""Hits that say what their score is made of: it takes three times as long as scoring."""
_log = logging.getLogger(__name__)


class LearnedRankParams(BaseModel):
    """What a plan may say for this call: nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class _Admitted:
    model: RankingModel
    card: RankerCard


class LearnedRankSkill:
    """Scores each candidate with boosted trees."""

    class Config(BaseModel):
        """Which ranker, and what it must have been trained on."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        ranker: Path | None = None
        """The file; None is `rankers/current.zip` in the home directory."""
        min_labels: int = Field(default=MIN_LABELS, ge=1)

    def __init__(
        self,
        config: Config,
        resources: Resources,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        path = config.ranker or resources.settings.home / RANKER
        self._file = RankerFile(path, config.min_labels)
        self._now = now

    async def run(self, requests: Sequence[SkillRequest]) -> list[SkillResult]:
        """Rerank each request's candidates."""
        return [self._run(request) for request in requests]

    async def check_health(self) -> None:
        """Return when there is a ranker that may be used.

        Raises:
            SkillUnavailable: there is none, or why it may not be used.
        """
        self._file.current()

    def _run(self, request: SkillRequest) -> SkillResult:
        params = params_of(request, LearnedRankParams)
        if isinstance(params, SkillError):
            return SkillResult(error=params)
        if request.budget_ms <= 0:
            return SkillResult(error=SkillTimeout("learned_rank", "no time was left"))
        try:
            ranker = self._file.current()
        except SkillUnavailable as error:
            return SkillResult(error=error)
        if not request.hits:
            return SkillResult()
        started = time.perf_counter()
        rows = feature_rows(request, ranker.model.settings, self._now())
        seen = time.perf_counter()
        ranked = _ranked(request.hits, ranker.model, rows)
        spent_ms = {
            "features": (seen - started) * 1000,
            "trees": (time.perf_counter() - seen) * 1000,
        }
        return SkillResult(
            hits=tuple(ranked[: request.top_k]),
            dropped=_below(ranked, request.top_k),
            spent_ms=spent_ms,
            explanation={
                "ranker": ranker.model.version,
                "labels": ranker.card.num_labels,
                "held_out_win": round(ranker.card.win, 4),
            },
        )


class RankerFile:
    """The ranker in a file, followed as it changes. Safe to share by threads."""

    def __init__(self, path: Path, min_labels: int) -> None:
        self._path = path
        self._min_labels = min_labels
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._admitted: _Admitted | None = None
        self._problem = f"there is no ranker at {path}: `tactician train ranker` makes one"

    def current(self) -> _Admitted:
        """The newest ranker that may be used. A file that became wrong leaves the one before.

        Raises:
            SkillUnavailable: there is none; says why.
        """
        stamp = self._seen()
        if stamp != self._stamp:
            with self._lock:
                if stamp != self._stamp:
                    self._read()
                    self._stamp = stamp
        if self._admitted is None:
            raise SkillUnavailable("learned_rank", self._problem)
        return self._admitted

    def _read(self) -> None:
        try:
            model, card = load_ranker(self._path.read_bytes(), str(self._path))
            if refusals := card.refusals(self._min_labels):
                raise SkillMisconfigured(str(self._path), "; ".join(refusals))
        except (OSError, SkillMisconfigured) as error:
            self._problem = str(error)
            _log.warning("ranker_refused problem=%s", error)
        else:
            self._admitted = _Admitted(model, card)
            _log.info("ranker_loaded version=%s labels=%d", model.version, card.num_labels)

    def _seen(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return (found.st_mtime_ns, found.st_ino, found.st_size)


def _ranked(hits: Sequence[Hit], model: RankingModel, rows: FloatArray) -> list[Hit]:
    scores = model.score(rows)
    order = sorted(range(len(hits)), key=lambda i: (-scores[i], hits[i].passage.id))
    parts = [_largest(own) for own in model.contributions(rows[order[:_EXPLAINED]])]
    parts += [()] * (len(order) - len(parts))
    return [
        _scored(hits[i], float(scores[i]), rank, own)
        for rank, (i, own) in enumerate(zip(order, parts, strict=True), start=1)
    ]


def _scored(hit: Hit, score: float, rank: int, parts: tuple[tuple[str, float], ...]) -> Hit:
    mine = Provenance(0, "learned_rank", rank, score, parts=parts)
    return replace(hit, score=score, provenance=(*hit.provenance, mine))


def _largest(contributions: np.ndarray) -> tuple[tuple[str, float], ...]:
    names = list(FEATURES)
    contributions = contributions[: len(names)]
    order = np.argsort(-np.abs(contributions), kind="stable")[:_PARTS]
    return tuple((names[i], round(float(contributions[i]), 4)) for i in order if contributions[i])


def _below(ranked: Sequence[Hit], top_k: int) -> tuple[Dropped, ...]:
    return tuple(
        Dropped(hit.passage.id, hit.passage.document_id, "reranked_down", f"rank {rank}")
        for rank, hit in enumerate(ranked[top_k:], start=top_k + 1)
    )
