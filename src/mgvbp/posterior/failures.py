"""Evaluations that failed, counted by reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Failures:
    """Numbers of draws that failed at two attempts, by reason, and how often a worker was lost."""

    raised: int = 0
    timed_out: int = 0
    lost: int = 0
    workers_lost: int = 0
    first_error: str = ""

    def add(self, reason: str, error: str = "") -> None:
        """Add one to the count named ``reason``, and remember the first error."""
        setattr(self, reason, getattr(self, reason) + 1)
        self.first_error = self.first_error or error

    @property
    def counts(self) -> dict[str, int]:
        """The counts above zero; ``workers_lost`` counts workers, whose draws others may have evaluated."""
        counts = {name: getattr(self, name) for name in ("raised", "timed_out", "lost", "workers_lost")}
        return {reason: count for reason, count in counts.items() if count}

    @property
    def total(self) -> int:
        """The number of draws without a value."""
        return self.raised + self.timed_out + self.lost

    def __str__(self) -> str:
        reasons = {
            "raised an exception": self.raised,
            "timed out": self.timed_out,
            "lost their worker": self.lost,
        }
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return listed + (f" (the first: {self.first_error})" if self.first_error else "")
