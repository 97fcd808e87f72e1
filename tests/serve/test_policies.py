"""Policies and experiments on a running service: taken over without a restart, nobody notices."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from policies.experiments.experiment import Experiment
from policies.experiments.rollout import RolloutSettings
from serve_app.parts.orchestrator import experiments_of, policy_registry
from tests.unit.policies.registry.test_registry import trained

pytestmark = [pytest.mark.serve, pytest.mark.slow]

QUERY = {"query": "what does the thing cost", "collection": "stub", "top_k": 5}
IN_USE_S = 10.0


class Clients:
    """Ask without a pause until they are stopped; keep what was answered."""

    def __init__(self, url, count=8):
        self.url, self.count = url, count
        self.answers, self._over = [], threading.Event()

    def __enter__(self):
        self._pool = ThreadPoolExecutor(self.count)
        self._asking = [self._pool.submit(self._ask, number) for number in range(self.count)]
        return self

    def __exit__(self, *_):
        self._over.set()
        for asking in self._asking:
            asking.result()
        self._pool.shutdown()

    def _ask(self, number):
        with httpx.Client(base_url=self.url, timeout=30) as http:
            turn = 0
            while not self._over.is_set():
                turn += 1
                session = f"{number}-{turn % 20}"
                answer = http.post("/v1/retrieve", json=QUERY | {"session_id": session})
                self.answers.append((answer.status_code, session, answer.json().get("decision")))
                time.sleep(0.02)  # the two cores have other things to do

    def wait_until(self, wanted):
        """Seconds until the latest answer of every client is as wanted."""
        started = time.monotonic()
        while time.monotonic() - started < 2 * IN_USE_S:
            latest = self.answers[-2 * self.count :]
            if len(latest) >= self.count and wanted([decision for _, _, decision in latest]):
                return time.monotonic() - started
            time.sleep(0.05)
        raise AssertionError(f"still {Counter(d['policy_version'] for _, _, d in latest)}")


def versions(decisions):
    return {decision["policy_version"] for decision in decisions}


def test_a_promotion_and_a_rollback_fail_no_request_and_are_soon_in_use(service):
    registry = policy_registry(service.config)
    version = registry.publish(*trained()).version
    with Clients(service.url) as clients:
        clients.wait_until(lambda decisions: {d["policy"] for d in decisions} == {"rules"})
        registry.promote(version)
        promoted_s = clients.wait_until(lambda decisions: versions(decisions) == {version})
        registry.rollback()
        back_s = clients.wait_until(lambda decisions: version not in versions(decisions))
    assert {200} == {status for status, _, _ in clients.answers}
    assert promoted_s < IN_USE_S
    assert back_s < IN_USE_S


def test_an_experiment_splits_live_traffic_by_session_until_it_is_stopped(service):
    registry, experiments = policy_registry(service.config), experiments_of(service.config)
    version = registry.publish(*trained(seed=2)).version
    experiment = Experiment(
        name="half",
        treatment=version,
        control=registry.index().current,
        settings=RolloutSettings(stages=(0.5, 1.0)),
        stage_starts=(datetime.now(UTC),),
    )
    with Clients(service.url) as clients:
        clients.wait_until(lambda decisions: version not in versions(decisions))
        experiments.start(experiment)
        clients.wait_until(lambda decisions: version in versions(decisions))
        begin = len(clients.answers)
        time.sleep(2)
        end = len(clients.answers)
        experiments.replace(experiment, experiment.ended("stopped", datetime.now(UTC), "enough"))
        clients.wait_until(lambda decisions: version not in versions(decisions))
    arms = Counter(
        (session, d["policy_version"] == version) for _, session, d in clients.answers[begin:end]
    )
    treated = {session for session, treated in arms if treated}
    assert treated.isdisjoint(session for session, treated in arms if not treated)
    assert 0.3 < len(treated) / len({session for session, _ in arms}) < 0.7
    assert {200} == {status for status, _, _ in clients.answers}
