"""How many requests a part is given at once, found by trying.

An overloaded part that is given everything finishes nothing in time. This is how TCP shares a line
(RFC 5681, without its fast paths): the limit doubles with each round that was in time up to half of
what was too much last, then rises by one a round; a round that was late puts it to one, since the
part may still be busy with it. What exceeds the limit waits at the caller, where it costs nothing
and its deadline still counts.
"""

from math import inf

START = 16


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
        """Whether the part was late before: it may be asked for more than it can do."""
        return self._threshold < inf

    def left(self, requests: int) -> None:
        """Requests are under way from now on."""
        self._under_way += requests

    def landed(self, requests: int, *, late: bool | None, left_at_s: float, now_s: float) -> None:
        """Requests are back.

        Args:
            requests: how many.
            late: whether their time ran out on the way; None leaves the limit as it is.
            left_at_s: when they left. What left before the last decrease tells nothing new.
            now_s: on the same clock.
        """
        if late and left_at_s >= self._decreased_at_s:
            if self._limit > 1:  # one alone is late because of what was sent before
                self._threshold = max(min(self._limit, self._under_way) / 2, 1.0)
            self._limit, self._decreased_at_s = 1.0, now_s
        elif late is False and self._under_way >= self.limit:
            slowly = self._limit >= self._threshold
            self._limit += requests / self._limit if slowly else requests
            self._limit = min(self._limit, self._most)
        self._under_way -= requests
