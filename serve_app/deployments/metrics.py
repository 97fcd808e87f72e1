"""Numbers of a gateway on Ray's metrics ports, where Prometheus finds them as `ray_tactician_…`."""

from collections.abc import Sequence

from ray.util.metrics import Counter, Gauge

from serve_app.metrics import MEANINGS, Metric, Sample


class RayMetrics:
    """Publishes samples. Counters are given what they have risen by since the last time."""

    def __init__(self) -> None:
        self._counters = {
            m: Counter(m.value, MEANINGS[m], ("skill",)) for m in Metric if m.only_rises
        }
        self._gauges = {
            m: Gauge(m.value, MEANINGS[m], ("skill",)) for m in Metric if not m.only_rises
        }
        self._told: dict[tuple[Metric, str], float] = {}

    def publish(self, samples: Sequence[Sample]) -> None:
        """Hand the numbers to Ray."""
        for sample in samples:
            tags = {"skill": sample.skill}
            if not sample.metric.only_rises:
                self._gauges[sample.metric].set(sample.value, tags)
            elif risen := self._risen(sample):
                self._counters[sample.metric].inc(risen, tags)

    def _risen(self, sample: Sample) -> float:
        """What a counter has risen by; one that fell was started anew with other skills."""
        before = self._told.get((sample.metric, sample.skill), 0.0)
        self._told[sample.metric, sample.skill] = sample.value
        return sample.value - before if sample.value >= before else sample.value
