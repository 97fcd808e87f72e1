"""How many requests a part is given at once, found by trying.

An overloaded part that is given everything finishes nothing in time. This is how TCP shares a line
(RFC 5681, without its fast paths): the limit doubles with each round that was in time up to half of
what was too much last, then rises by one a round; a round that was late puts it to one, since the
part may still be busy with it. What exceeds the limit waits at the caller, where it costs nothing
and its deadline still counts.
"""

from collections import deque
from math import inf

START = 16
LEAST_THRESHOLD = 4.0
"""Up to here the limit doubles again whatever was too much: little is lost by trying."""
CAUTION = 0.5
"""Of a step up, after a round that took more than half of its time: the part is busy, or slow and
not busy at all."""
HURRY_S = 0.05
"""Rounds that were given less time than this tell nothing about the part when they are late."""
AT_LEAST = 1.25
"""Nor do rounds that were given little more than the part takes at best."""
REMEMBERED = 16
"""Rounds in time, the fastest of which says what the part takes at least."""


class ConcurrencyLimit:
    """The limit of one part, and what is under way there. Not for several threads."""

    def __init__(self, most: int) -> None:
        """Start low and rise fast; `most` is never exceeded."""
        self._most = most
        self._limit = float(min(START, most))
        self._threshold = inf
        """Above it, the limit rises slowly."""
        self._under_way = 0
        self._decreased_at_s = 0.0
        self._took_s: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def limit(self) -> int:
        """Requests that may be under way."""
        return int(self._limit)

    @property
    def room(self) -> int:
        """Further requests that may leave now."""
        return max(self.limit - self._under_way, 0)

    @property
    def is_tight(self) -> bool:
        """Whether the part was late and has not been given as much in time since: it may be asked
        for more than it can do.
        """
        return self._threshold < inf

    def left(self, requests: int) -> None:
        """Requests are under way from now on."""
        self._under_way += requests

    def landed(
        self, requests: int, *, left_at_s: float, now_s: float, slack_s: float, worked: bool
    ) -> None:
        """A round of requests is back.

        Args:
            requests: how many.
            left_at_s: when they left. What left before the last decrease tells nothing new.
            now_s: on the same clock.
            slack_s: what is left of their time, at most 0 when it ran out on the way.
            worked: whether somebody was still waiting for them.
        """
        took_s = now_s - left_at_s
        if slack_s <= 0:
            if took_s + slack_s >= max(HURRY_S, AT_LEAST * min(self._took_s, default=0.0)):
                self._lower(left_at_s, now_s)
            elif self._took_s:  # it had waited too long elsewhere, unless the part became slower
                self._took_s.popleft()
        elif worked:
            self._took_s.append(took_s)
            if self._under_way >= self.limit:
                self._raise(requests, 1.0 if took_s < slack_s else CAUTION)
        self._under_way -= requests

    def _lower(self, left_at_s: float, now_s: float) -> None:
        # One that was alone is late because of what was sent before, or because the part is slow.
        if left_at_s >= self._decreased_at_s and self._under_way > 1:
            too_much = min(self._limit, self._under_way)
            self._threshold = max(too_much / 2, LEAST_THRESHOLD)
            self._limit, self._decreased_at_s = 1.0, now_s

    def _raise(self, requests: int, caution: float) -> None:
        slowly = self._limit >= self._threshold
        self._limit += caution * requests / self._limit if slowly else requests
        self._limit = min(self._limit, self._most)
        if self._limit >= 2 * self._threshold:
            self._threshold = inf
