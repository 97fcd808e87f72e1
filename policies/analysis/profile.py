"""What first looks have told of a collection so far: the kind of collection that it is.

Whether siblings answer together is a habit of a collection more than of a query: within one, what a
single look says of it hardly tells queries apart, while the means of collections do. They need no
labels, and a policy can use what it learnt of one collection for another of the same kind.
"""

from collections.abc import Mapping

PREFIX = "profile."
OBSERVED = ("siblings", "pull", "near")
"""Last parts of the names of the probe features that are averaged."""
_FEWEST = 20
"""Looks without which a mean says nothing."""
_MEMORY = 1000
"""Looks after which the oldest ones begin to fade."""


class Profiles:
    """Running means of probe features by collection. Not safe to share by threads."""

    def __init__(self) -> None:
        self._means: dict[str, dict[str, float]] = {}
        self._counts: dict[str, dict[str, int]] = {}
        """Looks that had the feature: a skill that is added later starts at none."""

    def observe(self, collection: str, signals: Mapping[str, float]) -> None:
        """Take one look's probe features into the collection's means."""
        counts = self._counts.setdefault(collection, {})
        means = self._means.setdefault(collection, {})
        for name, value in signals.items():
            if name.startswith("probe.") and name.rpartition(".")[2] in OBSERVED:
                counts[name] = min(counts.get(name, 0) + 1, _MEMORY)
                before = means.get(name, value)
                means[name] = before + (value - before) / counts[name]

    def signals(self, collection: str) -> dict[str, float]:
        """The means of features that were seen often enough, under `profile.` and their name."""
        means = self._means.get(collection, {})
        return {
            PREFIX + name.removeprefix("probe."): means[name]
            for name, count in self._counts.get(collection, {}).items()
            if count >= _FEWEST
        }
