"""What reproductions measure of a result, and the change from one to another."""

from ..result import Result

__all__ = ["change", "iops", "response_ns"]


def change(of: float | None, base: float | None) -> float | None:
    """The change from `base` in percent; None where there is nothing to change."""
    return 100 * (of / base - 1) if of is not None and base else None


def response_ns(result: Result) -> float:
    """Mean response time of all requests in nanoseconds."""
    return float(result["latency_ns"]["all"]["mean"])


def iops(result: Result) -> float:
    """Requests a second of simulated time."""
    return float(result["throughput"]["iops"])
