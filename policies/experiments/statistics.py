"""Is there a difference, and was the split what it should be."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import betaln, xlog1py, xlogy

_MIXED_UNITS = 500
"""How closely wrong splits are looked for around the right one: as closely as so many units would
tell it (two points of a half, one of a tenth).
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """Treatment less control."""

    mean: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Moments:
    """All that the tests need of one arm's values; can be kept up while values come in."""

    count: int
    mean: float
    variance: float
    """Unbiased."""

    @classmethod
    def of(cls, values: np.ndarray) -> "Moments":
        """Of `(num_units,)` values, one per unit."""
        if len(values) == 0:
            return cls(0, 0.0, 0.0)
        variance = float(values.var(ddof=1)) if len(values) > 1 else 0.0
        return cls(len(values), float(values.mean()), variance)

    @classmethod
    def of_shares(cls, values: np.ndarray) -> "Moments":
        """Of `(num_units,)` shares in [0, 1].

        The variance is that of two units more, one of them at 0 and one at 1: what never happened
        to any unit so far may yet happen.
        """
        wider = cls.of(np.append(values, (0.0, 1.0)))
        return replace(cls.of(values), variance=wider.variance)

    @property
    def squared_error(self) -> float:
        """Of the mean; infinite below two values."""
        return self.variance / self.count if self.count > 1 else float("inf")


def welch(control: Moments, treatment: Moments, confidence: float = 0.95) -> Difference:
    """Welch's test: valid when it is looked at once, at a time that was fixed before.

    Source: Welch, The generalization of "Student's" problem, 1947; degrees of freedom by
        Satterthwaite.
    """
    delta = treatment.mean - control.mean
    squared = control.squared_error + treatment.squared_error
    if not np.isfinite(squared):
        return Difference(delta, -np.inf, np.inf, 1.0)
    if squared == 0:
        return Difference(delta, delta, delta, float(delta == 0))
    parts = [m.squared_error**2 / (m.count - 1) for m in (control, treatment)]
    freedom = squared**2 / sum(parts)
    error = float(np.sqrt(squared))
    radius = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    p_value = float(2 * stats.t.sf(abs(delta) / error, freedom))
    return Difference(delta, delta - radius, delta + radius, p_value)


def always_valid(
    control: Moments, treatment: Moments, confidence: float = 0.95, expected_effect: float = 0.02
) -> Difference:
    """A test that may be looked at after every request: over all looks together the probability of
    a false alarm stays below 1 - confidence.

    Args:
        control: without the treatment.
        treatment: with it.
        confidence: of the interval, over all looks.
        expected_effect: size of difference that is worth finding; it only decides when the test is
            sharpest (the standard deviation of its mixing distribution).

    Source: Johari, Koomen, Pekelis and Walsh, Peeking at A/B Tests, 2017: the mixture sequential
        probability ratio test for a difference of means, normal mixture, variances plugged in. The
        normal approximation needs some 50 units an arm; below that it reports nothing.
    """
    delta = treatment.mean - control.mean
    squared = control.squared_error + treatment.squared_error
    if min(control.count, treatment.count) < 50 or not np.isfinite(squared) or squared == 0:
        return Difference(delta, -np.inf, np.inf, 1.0)
    mixing = expected_effect**2
    total = squared + mixing
    log_ratio = 0.5 * np.log(squared / total) + mixing * delta**2 / (2 * squared * total)
    alpha = 1 - confidence
    radius = float(
        np.sqrt(squared * total / mixing * (np.log(total / squared) - 2 * np.log(alpha)))
    )
    p_value = float(min(1.0, np.exp(-log_ratio)))
    return Difference(delta, delta - radius, delta + radius, p_value)


def sample_ratio_p_value(control: int, treatment: int, share: float) -> float:
    """How likely counts as uneven as these are when `share` of the units get the treatment; exact,
    and it may be looked at after every unit: over all looks together the probability that it ever
    falls below a level is at most that level.

    Below 0.001 something assigns or records units wrongly, and no other number of the experiment
    means anything.

    Source: Lindon and Malek, Anytime-Valid Inference for Multinomial Count Data, 2022: the Bayes
        factor of a beta mixture around `share` against `share` is a martingale that starts at 1
        (Ville's inequality). Why to look at all: Fabijan et al., Diagnosing Sample Ratio Mismatch
        in Online Controlled Experiments, 2019.
    """
    if control + treatment == 0 or not 0 < share < 1:
        return 1.0
    treated, untreated = _MIXED_UNITS * share, _MIXED_UNITS * (1 - share)
    mixed = betaln(treated + treatment, untreated + control) - betaln(treated, untreated)
    log_factor = mixed - xlogy(treatment, share) - xlog1py(control, -share)
    return float(np.exp(min(-log_factor, 0.0)))
