"""The experience store as a part."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

from policies.drift.watch import DriftWatch
from policies.errors import PolicyError
from policies.experience.record import Experience, ExperienceRecord, Signal
from policies.experience.store import ExperienceStore
from policies.experience.writer import ExperienceWriter, WriterSettings
from policies.experiments.rollout import Verdict
from policies.experiments.watch import ExperimentWatch
from policies.learning.online import OnlineLearner
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import drift_book, experiments_of, online_book, policy_registry
from serve_app.requests import Find
from serve_app.train import incumbent
from skills.errors import SkillError, SkillUnavailable

log = logging.getLogger(__name__)

WATCH_EVERY_S = 10.0
WATCH_SHARE, LEARN_SHARE = 0.02, 0.2
"""Of the time, at most: a look at an experiment reads every request of the stage; learning has to
keep up with them."""


class _Sometimes:
    """Something that is done now and then, once at a time."""

    def __init__(self, look: Callable[[], Awaitable[None]], share: float = WATCH_SHARE) -> None:
        self._look, self._share = look, share
        self._under_way: asyncio.Task[None] | None = None
        self._again_at_s = 0.0

    def begin(self) -> None:
        """Do it in the background, unless it was done lately or is being done."""
        idle = self._under_way is None or self._under_way.done()
        if idle and time.monotonic() >= self._again_at_s:
            self._under_way = asyncio.create_task(self._once())

    async def _once(self) -> None:
        started_s = time.monotonic()
        try:
            await self._look()
        finally:
            now_s = time.monotonic()
            self._again_at_s = now_s + max(WATCH_EVERY_S, (now_s - started_s) / self._share)


class RecorderPart:
    """Keeps experience, and gives it back by request id."""

    def __init__(
        self,
        store: ExperienceStore,
        writer: ExperienceWriter,
        watch: ExperimentWatch,
        drift: DriftWatch,
        learner: OnlineLearner,
    ) -> None:
        self._store = store
        self._writer = writer
        self._watch = watch
        self._drift = drift
        self._learner = learner
        # Here, where requests are kept; one that reads much does not make the other one wait.
        self._looks = (
            _Sometimes(self._look_at_experiment),
            _Sometimes(self._look_for_drift),
            _Sometimes(self._learn, LEARN_SHARE),
        )

    @classmethod
    def build(cls, config: TacticianConfig) -> Self:
        """On the configured database, migrated when it is older."""
        config.home.mkdir(parents=True, exist_ok=True)
        settings = config.experience
        store = ExperienceStore(config.experience_url, keep_text=settings.store_query_text)
        writer = ExperienceWriter(store, WriterSettings(capacity=settings.max_waiting))
        watch = ExperimentWatch(policy_registry(config), experiments_of(config), store)
        drift = DriftWatch(drift_book(config), store, config.policy.drift)
        online = config.policy.online
        learner = OnlineLearner(online_book(config), store, partial(incumbent, config), online)
        return cls(store, writer, watch, drift, learner)

    async def run(
        self, requests: Sequence[ExperienceRecord | Signal | Find]
    ) -> list[Experience | bool | SkillError | None]:
        """Write records and signals (True once durable), find requests (None when unknown)."""
        for look in self._looks:
            look.begin()
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def _one(
        self, request: ExperienceRecord | Signal | Find
    ) -> Experience | bool | SkillError | None:
        try:
            if isinstance(request, Find):
                return await asyncio.to_thread(self._store.get, request.request_id)
            await self._writer.submit(request)
        except PolicyError as error:
            return SkillUnavailable("recorder", str(error))
        return True

    async def check_health(self) -> None:
        """The database answers."""
        try:
            await asyncio.to_thread(self._store.check)
        except PolicyError as error:
            raise SkillUnavailable("recorder", str(error)) from error

    async def _look_at_experiment(self) -> None:
        try:
            looked = await asyncio.to_thread(self._watch.step)
        except PolicyError as error:
            log.warning("experiment not looked at", extra={"why": str(error)})
            return
        if looked is not None and looked.report.verdict is not Verdict.WAIT:
            extra = {"experiment": looked.experiment.name, "why": looked.report.reason}
            log.warning("experiment moved: %s", looked.report.verdict, extra=extra)

    async def _look_for_drift(self) -> None:
        try:
            alarms = await asyncio.to_thread(self._drift.step)
        except PolicyError as error:
            log.warning("drift not looked for", extra={"why": str(error)})
            return
        for alarm in alarms:
            extra = {"kind": alarm.kind, "subject": alarm.subject, "why": alarm.detail}
            log.warning("drift noticed", extra=extra | {"p_value": alarm.p_value})

    async def _learn(self) -> None:
        try:
            learnt = await asyncio.to_thread(self._learner.step)
        except PolicyError as error:
            log.warning("rewards not learnt", extra={"why": str(error)})
            return
        if learnt:
            log.info("rewards learnt", extra={"rewards": learnt})
