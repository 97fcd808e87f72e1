"""Query analysis as a part."""

from collections.abc import Sequence

from policies.analysis import Analyzer
from policies.types import QueryFeatures


class AnalyzerPart:
    """Queries to features."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._analyzer.analyze(["warm-up 预热"])  # loads the word lists before the first query

    async def run(self, requests: Sequence[str]) -> list[QueryFeatures]:
        """Analyse queries; some tenths of a millisecond each, so it stays on the event loop."""
        return self._analyzer.analyze(requests)

    async def check_health(self) -> None:
        """Nothing it depends on can be away."""
