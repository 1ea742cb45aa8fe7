"""The figures that compare runs: the path of each in a result, its format, and which side is better."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import evidence, units
from .evidence import life
from .result import Result, tenant_key

LATENCIES = (("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
"""Percentiles of a table: the key in a result, and its heading."""

CAUSES = (
    "host", "gc", "merge", "rmw", "prefetch", "metadata", "read_ahead", "checkpoint", "patrol", "parity", "rebuild",
)  # fmt: skip
"""Causes of flash operations, in the order of tables and charts."""

_EQUAL = 1e-9
_MOST_SEEDS = 8
"""Most seeds that a note names."""


def _is_modelled_time(times: Mapping[str, Any], key: str) -> bool:
    value = times.get(key)
    return value != 0 and not (key == "mean" and value is not None and times.get("p50") == 0)


def modelled(times: Mapping[str, Any] | None, key: str) -> float | None:
    """A response time; None if not measured or not modelled, as 0 ns, or the mean if half of the requests take 0 ns."""
    times = times or {}
    return times.get(key) if _is_modelled_time(times, key) else None


def response_time(times: Mapping[str, Any] | None, key: str) -> str:
    """A response time as text: `81.0 us`, `not modelled`, or a dash if not measured."""
    times = times or {}
    return units.nanoseconds(times.get(key)) if _is_modelled_time(times, key) else units.NOT_MODELLED


def _value(result: Result, path: Sequence[str]) -> object:
    value: object = result.get(path[0])
    for key in path[1:]:
        if isinstance(value, list):
            value = value[int(key)] if path[0] != "tenants" else _tenant(value, key)
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _tenant(tenants: Sequence[Mapping[str, Any]], key: str) -> Mapping[str, Any] | None:
    """The first tenant whose name has this form within the names of figures."""
    return next((tenant for tenant in tenants if tenant_key(str(tenant["name"])) == key), None)


def is_modelled(result: Result, path: Sequence[str]) -> bool:
    """Whether the drive models the time or energy at this path of a result; True for all other figures."""
    match path[0]:
        case "latency_ns" | "jobs" | "tenants" if "latency_ns" in path:
            times = _value(result, path[:-1])
            return not isinstance(times, dict) or _is_modelled_time(times, path[-1])
        case "gc" if path[-1].endswith("_ns"):
            return _value(result, path) != 0
        case "energy_uj" if path[-1] == "total":
            return _value(result, path) is not None
        case "throughput":
            requests = result.get("requests") or {}
            known = _value(result, path) is not None
            return known or result.get("fidelity") != "timed" or not any(requests.values())
    return True


@dataclass(frozen=True)
class Metric:
    """A row of a comparison; `better` is `low`, `high`, or empty if neither is."""

    label: str
    path: tuple[str, ...]
    show: Callable[[float | None], str]
    better: str

    def of(self, result: Result) -> float | None:
        """The value in a result; None if not measured, not modelled, or the lifetime of too short a run."""
        if evidence.leaves_out(result, ".".join(self.path)):
            return None
        value = _value(result, self.path)
        return value if isinstance(value, int | float) and is_modelled(result, self.path) else None

    def cell(self, result: Result) -> str:
        """The value as text, `not modelled`, or a dash."""
        return self.show(self.of(result)) if is_modelled(result, self.path) else units.NOT_MODELLED

    def is_shown(self, results: Iterable[Result]) -> bool:
        """Whether a table has this row: some result has a nonzero value, or a drive that does not model the value."""
        return any(self.of(result) or not is_modelled(result, self.path) for result in results)


def _latencies() -> list[Metric]:
    return [
        Metric(f"{kind} {heading}", ("latency_ns", kind, key), units.nanoseconds, "low")
        for kind in ("read", "write")
        for key, heading in LATENCIES
        if key not in ("p90",)
    ]


SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    (
        "performance",
        (
            Metric("IOPS", ("throughput", "iops"), units.count, "high"),
            Metric("bandwidth", ("throughput", "bytes_per_s"), units.rate, "high"),
            *_latencies(),
        ),
    ),
    (
        "flash",
        (
            Metric("write amplification", ("write_amplification",), units.ratio, "low"),
            Metric("flash consumed", ("flash", "consumed_bytes"), units.size, "low"),
            Metric("read amplif., host", ("read_amplification", "host"), units.ratio, "low"),
            Metric("read amplif., GC", ("read_amplification", "gc"), units.ratio, "low"),
            Metric("page reads", ("flash", "page_reads"), units.count, "low"),
            Metric("page programs", ("flash", "page_programs"), units.count, "low"),
            Metric("partial programs", ("flash", "partial_programs"), units.count, ""),
            Metric("re-programs", ("flash", "reprograms"), units.count, ""),
            Metric("padding", ("padding_bytes",), units.size, "low"),
            Metric("bytes on flash buses", ("flash", "bytes_transferred"), units.size, "low"),
            Metric("erases", ("flash", "erases"), units.count, "low"),
            Metric("GC runs", ("gc", "runs"), units.count, "low"),
            Metric("GC moved subpages", ("gc", "moved_subpages"), units.count, "low"),
            Metric("GC run mean", ("gc", "mean_ns"), units.nanoseconds, "low"),
            Metric("GC run p99", ("gc", "p99_ns"), units.nanoseconds, "low"),
            Metric("merge moved subpages", ("merge", "moved_subpages"), units.count, "low"),
        ),
    ),
    (
        "cost",
        (
            Metric("map DRAM, peak", ("mapping", "bytes_peak"), units.size, "low"),
            Metric("energy", ("energy_uj", "total"), units.energy, "low"),
            Metric("most erased block", ("lifetime", "max_erases"), units.count, "low"),
            Metric("host writes in life", ("lifetime", "projected_host_bytes"), units.size, "high"),
            Metric("TBW", ("endurance", "tbw"), units.terabytes, "high"),
            Metric("DWPD over 5 years", ("endurance", "dwpd_5_years"), units.ratio, "high"),
            Metric("years at this load", ("endurance", "years"), units.ratio, "high"),
        ),
    ),
)

_MOST_JOBS = 10


def sections(results: Sequence[Result]) -> tuple[tuple[str, tuple[Metric, ...]], ...]:
    """`SECTIONS`, and rates and response times of each of the first sections of a job file, if it has several."""
    jobs = results[0].get("jobs") or []
    by_job = []
    for at, name in enumerate(str(job["job"]) for job in jobs[:_MOST_JOBS]):
        by_job.append(Metric(f"{name} IOPS", ("jobs", str(at), "throughput", "iops"), units.count, "high"))
        by_job += [
            Metric(f"{name} {kind} {heading}", ("jobs", str(at), "latency_ns", kind, key), units.nanoseconds, "low")
            for kind in ("read", "write")
            for key, heading in LATENCIES
            if key in ("mean", "p99", "p999")
        ]
    return (*SECTIONS, ("by job", tuple(by_job))) if len(jobs) > 1 else SECTIONS


METRICS = tuple(metric for _, metrics in SECTIONS for metric in metrics)

_TIMES = "mean|p50|p90|p99|p999|p9999|max"
_FIGURES = {
    "latency_ns": rf"(all|read|write)\.({_TIMES})",
    "requests": "read|write|trim|flush",
    "host": "(bytes|subpages)_(read|written|transferred)|subpages_hit",
    "flash": r"page_reads|page_programs|partial_programs|reprograms|erases|consumed_bytes|bytes_sensed"
    r"|bytes_transferred|read_retries|pair_copies|pair_rescues|failed_programs|failed_erases"
    r"|by_cause\.[a-z_]+\.(reads|programs)",
    "lifetime": "(mean|min|max|reused)_erases|projected_host_bytes|host_bytes|retired_blocks",
    "reliability": r"lost_subpages\.[a-z_]+|failed_reads|failed_dies",
    "endurance": "waf|tbw|dwpd|dwpd_5_years|years|host_bytes_per_day|drive_writes",
    "mapping": r"bytes|bytes_peak|tables\..+",
    "merge": "count|moved_subpages",
    "gc": "runs|erased_blocks|moved_subpages|mean_ns|p99_ns",
    "energy_uj": "read|program|reprogram|erase|total",
    "power_w": "mean|peak|window_ns|time_ns",
    "read_amplification": "host|gc",
    "rain": rf"parity_programs|bytes_programmed|write_amplification|open_stripes|rebuilt_reads|failed_rebuilds"
    rf"|moved_pages|rebuild_ns|rebuild_latency_ns\.({_TIMES})",
    "fdp": r"configuration\.(reclaim_groups|handles|nominal_bytes|reclaim_units)"
    r"|statistics\.(host|media|media_erased)_bytes|events\.[a-z_]+",
    "zns": r"zones|appends|resets|finishes|implicit_closes|padded_bytes|(states|errors)\.[a-z_]+|changed_zones\.number"
    r"|zrwa\.(area_bytes|granularity_bytes|resources|allocated|explicit_commits|implicit_commits|overwritten_bytes)",
    "checkpoint": "begun|page_programs|bytes_programmed|write_amplification",
    "read_ahead": "subpages_(read|hit|wasted)|buffer_bytes_peak",
    "throughput": "iops|bytes_per_s",
    "tenants": rf"[\w-]+\.((alone\.)?latency_ns\.(all|read|write)\.({_TIMES})|(alone\.)?throughput\.(iops|bytes_per_s)"
    r"|slowdown\.(mean|p99)|requests\.(read|write|trim|flush)|bytes_(read|written|programmed)|programmed_share"
    r"|write_amplification)",
    "tenancy": r"bytes_programmed|bytes_without_tenant|fairness\.(least_over_most|jain)",
    "precondition": "bytes_written|last_write_amplification",
    "power": rf"recovery_ns\.({_TIMES})|cuts|pages_scanned|bytes_programmed|write_amplification|unflushed_[a-z]+_lost",
    "ftl_stats": ".+",
    "config": ".+",
}
_ALONE = ("write_amplification", "padding_bytes", "simulated_ns", "seed", "schema_version")


def is_figure(name: str) -> bool:
    """Whether a result may have a number of this name (`palimpsest help results`); layers have names of their own."""
    table, _, key = name.partition(".")
    return name in _ALONE or (table in _FIGURES and re.fullmatch(_FIGURES[table], key) is not None)


SHORT = {
    "iops": "throughput.iops", "bandwidth": "throughput.bytes_per_s", "wa": "write_amplification",
    "erases": "flash.erases", "dram": "mapping.bytes_peak", "energy": "energy_uj.total", "power": "power_w.peak",
    "tbw": "endurance.tbw", "dwpd": "endurance.dwpd_5_years", "lifetime": "endurance.years",
    **{f"{of}.{time}": f"latency_ns.{of}.{time}" for of in ("all", "read", "write") for time in _TIMES.split("|")},
}  # fmt: skip
"""Short words for figures, in conditions."""

_TIMED = re.compile(
    r"(tenants\.[\w-]+\.)?(latency_ns|throughput|power_w)\..+|.*_ns(\..+)?|endurance\.(dwpd|years|host_bytes_per_day)"
)


def is_timed(name: str) -> bool:
    """Whether only a run with times has this figure; at count fidelity the figure is null."""
    return _TIMED.fullmatch(name) is not None


def unit(name: str) -> str:
    """Unit of a figure: `ns`, `bytes`, `bytes_per_s`, `uJ`, `s`, `TB`, `years`, `W`, or nothing."""
    last = name.rpartition(".")[2]
    if "latency_ns" in name.split(".") or last.endswith("_ns"):
        return "ns"
    if last.endswith("bytes_per_s"):
        return "bytes_per_s"
    if "bytes" in last or name.startswith("mapping."):
        return "bytes"
    tables = {"energy_uj": "uJ", "power_w": "W", "endurance.tbw": "TB", "endurance.years": "years"}
    found = tables.get(name) or tables.get(name.partition(".")[0])
    return found or ("s" if last.endswith("_s") and not last.endswith("per_s") else "")


_SHOWN: dict[str, Callable[[float | None], str]] = {
    "ns": units.nanoseconds, "bytes": units.size, "bytes_per_s": units.rate, "uJ": units.energy, "": units.own,
}  # fmt: skip


def metric_of(name: str) -> Metric:
    """The figure of this name, with its heading if tables have one."""
    path, of = tuple(name.split(".")), unit(name)
    own, prefix = (path[2:], f"{path[1]} ") if path[0] == "tenants" else (path, "")
    found = next((each for each in METRICS if each.path == own), None)
    if found and prefix:
        found = replace(found, label=prefix + found.label, path=path)
    return found or Metric(name, path, _SHOWN.get(of) or (lambda value: f"{units.ratio(value)} {of}"), "")


def best(metric: Metric, values: Sequence[float | None]) -> list[bool]:
    """Marks the best values, compared as printed; none if all are equal or no side is better."""
    known = [value for value in values if value is not None]
    if not metric.better or len(known) < 2:
        return [False] * len(values)
    low, high = min(known), max(known)
    if high - low <= _EQUAL * abs(high):
        return [False] * len(values)
    target = low if metric.better == "low" else high
    # Values that print alike are equal, because a mark on one would look arbitrary.
    shown = [None if value is None else metric.show(value) for value in values]
    if len({text for text in shown if text is not None}) == 1:
        return [False] * len(values)
    return [text == metric.show(target) for text in shown]


def relative(value: float | None, base: float | None) -> float | None:
    """A value as a multiple of the first layer's; None if one is missing."""
    return value / base if value is not None and base else None


def paired(metric: Metric, result: Result, base: Result) -> float | None:
    """A figure as a multiple of the figure of `base`; of repeats the mean of the ratios of equal seeds."""
    mine, other = ([metric.of(each) for each in of.repeats or (of,)] for of in (result, base))
    ratios = [relative(*pair) for pair in zip(mine, other, strict=False)]
    known = [ratio for ratio in ratios if ratio is not None]
    return sum(known) / len(known) if known and len(known) == len(ratios) else None


def labelled_notes(results: Sequence[Result]) -> list[str]:
    """The notes of several results, each once, with the labels of its results unless all have the note.

    A note on seeds that change nothing follows, because their equal figures look like a certain mean.
    """
    labels: dict[str, dict[str, None]] = {}
    for result in results:
        for note in result.get("notes", []):
            labels.setdefault(note, {})[result.label] = None
    notes = [note if len(of) == len(results) else f"{', '.join(of)}: {note}" for note, of in labels.items()]
    return notes + life.note(results) + equal_seeds(results)


_BESIDE_FIGURES = ("seed", "label", "sim", "provenance")
"""Keys of a result that differ between seeds although no figure does."""


def no_interval(results: Iterable[Result]) -> str | None:
    """Why runs with several seeds, all of whose figures are equal, have no interval; None if a figure differs."""
    seeds: list[str] = []
    first: Result | None = None
    for result in results:
        if first is not None and _without_seed(result) != _without_seed(first):
            return None
        first = first or result
        seeds.append(str(result["seed"]))
    if first is None or len(set(seeds)) < 2:
        return None
    named = f"{', '.join(seeds[:_MOST_SEEDS])}{', ...' * (len(seeds) > _MOST_SEEDS)}"
    return f"seeds {named} give equal figures, which have no interval: {_undrawn(first)}"


def _without_seed(result: Result) -> dict[str, Any]:
    return {key: result[key] for key in result.keys() if key not in _BESIDE_FIGURES}  # noqa: SIM118 - not a dict


def _undrawn(result: Result) -> str:
    """The parts of a run on which the seed does not act, and the remedy."""
    before = str((result.get("precondition") or {}).get("spec", "none"))
    draws = "random:" in before or before == "steady"
    reasons = ["a trace is replayed as recorded with every seed"] if result.get("trace_format") else []
    if not draws:
        drawn = f"{before if before.startswith('fill:') else 'fill:90%'},random:1x"
        reasons.append(f"--precondition {before} draws nothing; {drawn} draws overwrites from the seed")
    return ", and ".join(reasons) or "nothing that the seed draws changes a figure"


def equal_seeds(results: Sequence[Result]) -> list[str]:
    """A note for the runs that several seeds repeat without a difference, with their labels."""
    runs: dict[str, list[Result]] = {}
    for result in results:
        runs.setdefault(result.label, []).extend(result.repeats or (result,))
    labels: dict[str, list[str]] = {}
    for label, repeated in runs.items():
        if (why := no_interval(repeated)) is not None:
            labels.setdefault(why, []).append(label)
    return [f"{', '.join(of)}: {why}" for why, of in labels.items()]


def factor(ratio: float | None) -> str:
    """A ratio as text: `1.61x`, `21x`, and `617x less` below a tenth."""
    if not ratio:
        return "" if ratio is None else "0"
    if ratio < 0.1:
        return f"{factor(1 / ratio)} less"
    return f"{ratio:.2f}x" if ratio < 9.995 else f"{units.count(round(ratio))}x".replace(" ", "")


def change(ratio: float) -> str:
    """A ratio as a signed change: `-33 %`, `-5.5 %`; from ten times on as a multiple: `12x`."""
    if ratio >= 10:
        return f"{ratio:,.0f}x"
    percent = 100 * (ratio - 1)
    decimals = 1 if abs(percent) < 9.95 or -100 < percent <= -90 else 0
    return f"{percent:+.{decimals}f} %"


def is_silenced(path: Sequence[str], silent: Collection[str]) -> bool:
    """Whether a figure is in one of the tables `silent`, whose figures do not compare (`fair.silenced`)."""
    return path[0] in silent


def handle_name(of: Mapping[str, Any]) -> str:
    """The name of a reclaim unit handle: its number, behind that of the reclaim group if there are several."""
    if of["handle"] is None:
        return "controller"
    return str(of["handle"]) if of.get("group") is None else f"{of['group']}:{of['handle']}"
