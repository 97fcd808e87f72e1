import asyncio

from serve_app.deployments.metrics import RayMetrics
from serve_app.execution.breaker import BreakerState
from serve_app.execution.cache import CacheCounts
from serve_app.execution.wellness import SkillWellness
from serve_app.metrics import MEANINGS, Metric, Sample, result_samples, skill_samples


def test_every_metric_says_what_it_means():
    assert set(Metric) == set(MEANINGS)


def test_a_skill_that_is_left_alone_shows():
    report = {
        "dense": SkillWellness(BreakerState.OPEN, "down", 2, None),
        "keyword": SkillWellness(BreakerState.CLOSED, "", 0, 1.5),
    }
    told = {(s.metric, s.skill): s.value for s in skill_samples(report)}
    assert (1.0, 2, 0.0) == (
        told[Metric.SKILL_AWAY, "dense"],
        told[Metric.SKILL_LEFT, "dense"],
        told[Metric.SKILL_AWAY, "keyword"],
    )
    assert 1.5 == told[Metric.SKILL_P50_MS, "keyword"]
    assert (Metric.SKILL_P50_MS, "dense") not in told


def test_the_hit_ratio_counts_those_that_waited_for_another():
    told = {s.metric: s.value for s in result_samples(CacheCounts(hits=2, joined=1, misses=1))}
    assert 0.75 == told[Metric.RESULTS_HIT_RATIO]
    assert (
        0.0 == {s.metric: s.value for s in result_samples(CacheCounts())}[Metric.RESULTS_HIT_RATIO]
    )


def test_counters_are_told_what_they_have_risen_by():
    metrics = RayMetrics()
    risen = [metrics._risen(Sample(Metric.SKILL_LEFT, value, "dense")) for value in (2, 5, 5, 1)]
    assert [2, 3, 0, 1] == risen
    metrics.publish([Sample(metric, 1.0, "dense") for metric in Metric])


async def test_a_gateway_publishes_while_it_is_watched(gateway):
    told = asyncio.get_running_loop().create_future()
    gateway.publish = lambda samples: told.done() or told.set_result(samples)
    watching = asyncio.create_task(gateway.watch())
    samples = await asyncio.wait_for(told, 10)
    watching.cancel()
    assert {"left", "right", "fusion", ""} == {sample.skill for sample in samples}
