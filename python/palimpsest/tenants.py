"""Tenants: the sections of a job file or the volumes of a trace, their shares of the drive, and their slowdown.

The slowdown of a tenant is a response time together with the others, divided by that of a run of the tenant alone on
the same drive, of the same requests. Fairness is computed from the slowdowns of the means: the smallest over the
largest (Tavakkol et al., MQSim, FAST 2018), and Jain's index of their reciprocals. docs/tenants.md explains both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import engine, states, units
from .engine import Progress
from .errors import InputError
from .files import is_file, is_there
from .metrics import response_time
from .options import RunOptions
from .result import Result

MOST, LISTED = 64, 20
"""Tenants that run alone at most, and rows of a table."""
MOST_CAUSES = 6
"""Columns of the table of waits."""
CAUSES = {
    "behind_reads": "reads", "behind_programs": "programs", "collection": "collection", "erase": "erases",
    "map": "records", "modify": "read-modify-write", "upkeep": "upkeep",
}  # fmt: skip
"""Parts of waits for the work of tenants."""

Tenant = Mapping[str, Any]


def of(result: Result) -> list[Tenant]:
    """The tenants of a result, in order; empty with one tenant."""
    found: list[Tenant] = result.get("tenants") or []
    return found


def requests(tenant: Tenant) -> int:
    """The measured requests of a tenant."""
    return sum(tenant["requests"].values())


def busiest(result: Result, most: int = LISTED) -> list[Tenant]:
    """The tenants with most requests, in order."""
    found = of(result)
    order = sorted(range(len(found)), key=lambda at: (-requests(found[at]), at))
    return [found[at] for at in sorted(order[:most])]


def rows(result: Result) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Headings, and for each of the busiest tenants its name and cells; no rows with one tenant."""
    shown = busiest(result)
    is_alone = any("slowdown" in tenant for tenant in shown)
    is_explained = any("why" in tenant for tenant in shown)
    heads = ["IOPS", "read", "written", "flash", "share", "WA", "p99"]
    heads += ["slower", "p99 slower"] * is_alone + ["p99 waits for"] * is_explained
    made = []
    for tenant in shown:
        latency, slowdown = tenant["latency_ns"] or {}, tenant.get("slowdown") or {}
        iops = tenant["throughput"]["iops"]
        cells = [units.count(iops and round(iops))]
        cells += [units.size(tenant[name]) for name in ("bytes_read", "bytes_written", "bytes_programmed")]
        share = tenant["programmed_share"]
        cells += [units.percent(share and round(share, 3)), units.ratio(tenant["write_amplification"])]
        cells.append(response_time(latency.get("all"), "p99"))
        cells += [units.ratio(slowdown.get(key)) for key in ("mean", "p99")] * is_alone
        cells += [_waits(tenant)] * is_explained
        made.append((str(tenant["name"]), cells))
    return heads, made


def _waits(tenant: Tenant) -> str:
    """The largest part of the slowest kind of request of a tenant at p99."""
    kinds = [kind["p99"] for kind in (tenant.get("why") or {}).values()]
    if not kinds:
        return ""
    from . import why  # loads rich

    slowest = max(kinds, key=lambda explained: explained["latency_ns"])
    part = max(why.PARTS, key=lambda part: why.share(slowest, part))
    return f"{why.PARTS[part]} {units.percent(round(why.share(slowest, part), 2))}"


def waits(result: Result) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Headings (the tenants that cause waits), and name and cells of each of the busiest tenants.

    A cell has the mean wait of a request, and the largest causes. No rows without `--operations slowest:N`.
    """
    shown = busiest(result)
    totals: dict[str, int] = {}
    for wait in (wait for tenant in shown for wait in tenant.get("waits") or []):
        name = _cause(wait)
        totals[name] = totals.get(name, 0) + sum(wait["parts_ns"].values())
    most = set(sorted(totals, key=lambda name: -totals[name])[:MOST_CAUSES])
    heads = [name for name in totals if name in most]
    rows = []
    for tenant in shown if heads else []:
        found = {_cause(wait): wait["parts_ns"] for wait in tenant.get("waits") or []}
        number = requests(tenant)
        rows.append((str(tenant["name"]), [_waited(found.get(head), number) for head in heads]))
    return heads, rows


def _cause(wait: Mapping[str, Any]) -> str:
    """The heading of a tenant that causes waits."""
    return "in the background" if wait["name"] is None else f"for {wait['name']}"


def _waited(parts: Mapping[str, int] | None, number: int) -> str:
    """The mean wait of `number` requests, and the two largest causes."""
    if not parts or not number:
        return units.ABSENT
    total = sum(parts.values())
    largest = sorted(parts.items(), key=lambda part: -part[1])[:2]
    named = (f"{CAUSES[part]} {units.percent(round(time / total, 2))}" for part, time in largest)
    return f"{units.nanoseconds(total / number)}: {', '.join(named)}"


def facts(result: Result) -> list[tuple[str, str]]:
    """Lines on all tenants together: the rest of the programmed bytes, and fairness."""
    tenancy = result.get("tenancy")
    if not tenancy:
        return []
    by = "data belongs to its last writer" if tenancy["programmed_by"] == "owners" else "shared as host writes"
    rest = units.size(tenancy["bytes_without_tenant"])
    said = f"{units.size(tenancy['bytes_programmed'])} programmed, {by}; {rest} without a tenant (older data, records)"
    found = [("tenants", said)]
    if fairness := tenancy.get("fairness"):
        said = (
            f"{units.ratio(fairness['least_over_most'])} (least / most slowdown), Jain {units.ratio(fairness['jain'])}"
        )
        found.append(("fairness", said))
    if (left := len(of(result)) - LISTED) > 0:
        found.append(("", f"{left:,} more tenants are in the result"))
    return found


def fairness(slowdowns: Sequence[float]) -> dict[str, float]:
    """The smallest slowdown over the largest, and Jain's index of the speeds (reciprocals); 1: all slow down alike."""
    speeds = [1 / slowdown for slowdown in slowdowns]
    jain = sum(speeds) ** 2 / (len(speeds) * sum(speed**2 for speed in speeds))
    return {"least_over_most": min(slowdowns) / max(slowdowns), "jain": jain}


def check(options: RunOptions) -> None:
    """Raises InputError for a run whose tenants cannot run alone."""
    if options.fidelity == "count":
        raise InputError("--alone: a run at count fidelity has no times; expected --fidelity timed")
    path = options.workload
    if path == "-" or (is_there(path) and not is_file(path)):
        raise InputError(f"--alone: the workload {options.workload} is read once; expected a file")


def _alone(options: RunOptions, result: Result) -> list[RunOptions]:
    """Runs of each tenant alone, of the requests that it had in `result`. Raises InputError."""
    found = of(result)
    if not 2 <= len(found) <= MOST:
        expected = f"expected 2 to {MOST} sections of a job file, or volumes of a trace (--volumes names some)"
        raise InputError(f"--alone: the workload has {len(found) or 'one'} tenant{'s' * bool(found)}; {expected}")
    total = sum(requests(tenant) for tenant in found)

    def part(number: int, tenant: Tenant) -> int:
        return max(1, round(number * requests(tenant) / max(1, total)))

    base, warmup = replace(options, series=False, operations=None), options.warmup
    return [
        replace(
            base, tenant=tenant["tenant"], label=f"{tenant['name']} alone",
            requests=options.requests and part(options.requests, tenant),
            warmup=warmup if warmup is None or warmup.endswith("%") else str(part(round(float(warmup)), tenant) - 1),
        )
        for tenant in found if requests(tenant)
    ]  # fmt: skip


def compared(
    options: RunOptions, result: Result, jobs: int, progress: Callable[[str], Progress | None]
) -> tuple[Result, BaseException | None]:
    """Runs each tenant alone; returns the result with slowdowns, and the exception that ended the runs, or None.

    Tenants without requests have no slowdown. Raises InputError for one tenant, or more than `MOST`.
    """
    runs = _alone(options, result)
    states.share()
    results, failure = engine.run_many(runs, min(jobs, len(runs)), progress)
    if failure is not None:
        return result, failure
    data = result.to_dict()
    measured = {run.tenant: found for run, found in zip(runs, results, strict=True)}
    slowdowns = []
    for tenant in data["tenants"]:
        found = measured.get(tenant["tenant"])
        alone = next((each for each in of(found) if each["tenant"] == tenant["tenant"]), None) if found else None
        if alone is None or not (alone["latency_ns"]["all"] and tenant["latency_ns"]["all"]):
            continue
        times, before = tenant["latency_ns"]["all"], alone["latency_ns"]["all"]
        tenant["alone"] = {"latency_ns": alone["latency_ns"], "throughput": alone["throughput"]}
        tenant["slowdown"] = {key: times[key] / before[key] if before[key] else None for key in ("mean", "p99")}
        slowdowns += [tenant["slowdown"]["mean"]] if tenant["slowdown"]["mean"] else []
    if len(slowdowns) > 1:
        data["tenancy"]["fairness"] = fairness(slowdowns)
    return Result(data, result.series, result.configuration), None
