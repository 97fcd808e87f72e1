"""How experiments stand, for those who ask often: looks at them are kept for a while."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from policies.experiments.experiment import Experiment
from policies.experiments.watch import Looked
from policies.rewards.settings import RewardSettings
from serve_app.errors import Overloaded
from serve_app.experiments import ExperimentDesk

KEPT_FOR_S = 10.0
PATIENCE_S = 20.0
"""How long a caller waits for a look, his own or somebody else's."""
MAX_KEPT = 100
"""Experiments whose last look is kept."""


@dataclass(frozen=True, slots=True)
class _Kept:
    looked: Looked
    until_s: float


class RecentLooks:
    """Looks at one experiment at a time, and gives out what it saw for ten seconds.

    What an experiment looks like that is over stays, once its last requests are old enough to have
    a reward.
    """

    def __init__(
        self,
        desk: ExperimentDesk,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._desk, self._now, self._patience_s = desk, now, patience_s
        self._kept: dict[str, _Kept] = {}
        self._under_way: asyncio.Task[Looked] | None = None

    async def look(self, name: str) -> Looked:
        """How an experiment stands, or stood some seconds ago.

        Raises:
            NotFound: there is none of that name.
            Overloaded: it takes long to look; what is seen is there for who asks again.
            PolicyError: experience or experiments cannot be read.
        """
        experiment = await asyncio.to_thread(self._desk.named, name)
        patient_until_s = time.monotonic() + self._patience_s
        while (known := self._known(experiment)) is None:
            task, mine = self._under_way, False
            if task is None or task.done():
                task, mine = asyncio.create_task(self._look(experiment)), True
                self._under_way = task
            await asyncio.wait({task}, timeout=max(patient_until_s - time.monotonic(), 0))
            if not task.done():
                raise Overloaded("experiment", "is being looked at; ask again in a while")
            if mine:
                return task.result()
        return known

    def _known(self, experiment: Experiment) -> Looked | None:
        kept = self._kept.get(experiment.name)
        if kept is None or kept.looked.experiment != experiment:
            return None
        return kept.looked if time.monotonic() < kept.until_s else None

    async def _look(self, experiment: Experiment) -> Looked:
        started_at = self._now()
        looked = await asyncio.to_thread(self._desk.look_at, experiment)
        settled_s = timedelta(seconds=RewardSettings().settle_after_s)
        ended_at = experiment.ended_at
        is_final = ended_at is not None and ended_at + settled_s < started_at
        until_s = float("inf") if is_final else time.monotonic() + KEPT_FOR_S
        self._kept.pop(experiment.name, None)
        self._kept[experiment.name] = _Kept(looked, until_s)
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return looked
