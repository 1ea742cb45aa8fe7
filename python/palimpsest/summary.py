"""The summary of one run, for a terminal: configuration, latency, operations of the flash, and costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from . import evidence, fair, tenants, units
from .evidence.life import at_rate, span
from .metrics import CAUSES, LATENCIES, handle_name, is_modelled, response_time
from .result import Result, flatten
from .units import count, nanoseconds, ratio, size, volume_name

_LABEL_WIDTH = 11
_COLUMN_WIDTH = 9


def config_value(result: Result, key: str) -> Any:  # noqa: ANN401 - a configuration value is of any type
    """A resolved configuration value by its dotted key; None if the result lacks the key."""
    config = result.get("config", {})
    return flatten(config).get(key) if isinstance(config, dict) else None


def _capacity(result: Result) -> tuple[int, int] | None:
    """Physical and logical bytes of the drive, from the resolved configuration."""
    physical = units.parse_bytes(config_value(result, "part.page_size"))
    factors = (
        "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip", "ssd.planes_per_die", "ssd.blocks_per_plane",
        "part.pages_per_block",
    )  # fmt: skip
    for key in factors:
        value = config_value(result, key)
        if not isinstance(value, int) or physical is None:
            return None
        physical *= value
    spare = _share(config_value(result, "ssd.over_provisioning"))
    return None if physical is None or spare is None else (physical, round(physical / (1 + spare)))


def _share(value: object) -> float | None:
    if isinstance(value, str) and value.rstrip().endswith("%"):
        try:
            return float(value.rstrip()[:-1]) / 100
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) else None


def drive_line(result: Result) -> str:
    """The drive in one line: geometry, capacity and over-provisioning."""
    parts = []
    channels, chips = config_value(result, "ssd.channels"), config_value(result, "ssd.chips_per_channel")
    if isinstance(channels, int) and isinstance(chips, int):
        dies = channels * chips * (config_value(result, "ssd.dies_per_chip") or 1)
        parts.append(f"{channels} channels, {dies} dies")
    page = units.parse_bytes(config_value(result, "part.page_size"))
    if page:
        cell = config_value(result, "part.cell")
        parts.append(f"{page // 1024} KiB {str(cell).upper() + ' ' if cell else ''}pages")
    capacity = _capacity(result)
    if capacity:
        spare = _share(config_value(result, "ssd.over_provisioning"))
        parts.append(f"{size(capacity[1])} of {size(capacity[0])} usable (OP {units.percent(spare)})")
    return f"{result['ssd']}: {', '.join(parts)}" if parts else str(result["ssd"])


def mean_sizes(result: Result) -> dict[str, float | None]:
    """Mean bytes of the host's reads and writes."""
    requests, host = result["requests"], result["host"]
    return {
        "read": host["bytes_read"] / requests["read"] if requests["read"] else None,
        "write": host["bytes_written"] / requests["write"] if requests["write"] else None,
    }


def precondition_line(result: Result) -> str | None:
    """The precondition in one line; None if the result has none."""
    before = result.get("precondition")
    if not before:
        return None
    if not before["bytes_written"]:
        return f"{before['spec']}: new drive"
    text = f"{before['spec']}: {size(before['bytes_written'])} written"
    if before.get("last_write_amplification"):
        text += f", write amplification {ratio(before['last_write_amplification'])} at its end"
    return text + evidence.converged(before.get("converged"))


def workload_line(result: Result) -> str:
    """The workload in one line: number, kinds and sizes of requests."""
    requests, sizes = result["requests"], mean_sizes(result)
    total = sum(requests.values())
    parts = []
    for kind, plural in (("read", "reads"), ("write", "writes"), ("trim", "trims"), ("flush", "flushes")):
        if requests.get(kind):
            mean = sizes.get(kind)
            share = units.number(100 * requests[kind] / total).removesuffix(".00").removesuffix(".0")
            parts.append(f"{share} % {plural}" + (f" of {size(mean)}" if mean else ""))
    return f"{result['workload']}: {count(total)} requests; {', '.join(parts) or 'none measured'}"


def facts(rows: list[tuple[str, str]]) -> Table:
    """Rows of a label and a text."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="bold", width=_LABEL_WIDTH)
    table.add_column(overflow="fold")
    for label, fact in rows:
        table.add_row(label, fact)
    return table


class ByWidth:
    """Output that `build` makes for the width of the console."""

    def __init__(self, build: Callable[[int], Iterable[RenderableType]]) -> None:
        self._build = build

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._build(options.max_width)


def _figures(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> ByWidth:
    """Figures in rows and columns; transposed on a narrow terminal, so that no number is cut."""

    def build(width: int) -> Iterator[Table]:
        column = max(_COLUMN_WIDTH, *(len(cell) for _, row in rows for cell in row), *map(len, columns)) + 1
        label = max(_LABEL_WIDTH, *(len(name) for name, _ in rows))
        fits = label + 1 + column * len(columns) <= width + 1
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(title, width=label if fits else None, header_style="bold", no_wrap=True)
        for heading in columns if fits else [name for name, _ in rows]:
            least = _COLUMN_WIDTH if fits else None
            table.add_column(heading, justify="right", min_width=least, header_style="bold", no_wrap=True)
        transposed = [(name, [row[at] for _, row in rows]) for at, name in enumerate(columns)]
        for name, row in rows if fits else transposed:
            table.add_row(name, *row)
        yield table

    return ByWidth(build)


def _latencies(result: Result) -> ByWidth | None:
    latency = result["latency_ns"]
    if latency is None:
        return None
    rows = [
        (kind, [response_time(latency.get(kind), key) for key, _ in LATENCIES])
        for kind in ("read", "write", "all")
        if kind == "all" or result["requests"].get(kind)
    ]
    return _figures("latency", [heading for _, heading in LATENCIES], rows)


_RECOVERY = {"mean": "mean", "p99": "p99", "max": "longest"}
_VOLUMES = 10
_JOBS = 10


def _volumes(result: Result) -> ByWidth | None:
    """The volumes with most requests."""
    found = sorted(result.get("volumes") or [], key=lambda volume: -sum(volume["requests"].values()))
    if not found:
        return None
    rows = []
    for volume in found[:_VOLUMES]:
        times = volume["latency_ns"] or {}
        read, write = (times.get(kind) or {} for kind in ("read", "write"))
        shown = [count(sum(volume["requests"].values())), size(volume["bytes_written"])]
        shown += [response_time(each, key) for each in (read, write) for key in ("mean", "p99")]
        rows.append((volume_name(volume), shown))
    if len(found) > _VOLUMES:
        rows.append((f"+{len(found) - _VOLUMES:,} more", [""] * 6))
    return _figures("volume", ["requests", "written", "r mean", "r p99", "w mean", "w p99"], rows)


def _jobs(result: Result) -> Iterator[RenderableType]:
    """Rates and response times of each section of a job file, or requests in a counted run; and the depths found."""
    jobs = result.get("jobs") or []
    rows = []
    for job in jobs[:_JOBS]:
        made = sum(job["requests"].values())
        if job["latency_ns"] is None:
            rows.append((job["job"], [count(made), size(job["bytes_read"]), size(job["bytes_written"])]))
            continue
        for kind in ("read", "write"):
            if times := job["latency_ns"][kind]:
                iops = (job["throughput"]["iops"] or 0) * job["requests"][kind] / made
                cells = [response_time(times, key) for key, _ in LATENCIES]
                rows.append((f"{job['job']} {kind}", [count(round(iops)), *cells]))
    if rows:
        heads = ["IOPS", *(heading for _, heading in LATENCIES)]
        yield _figures("job", heads if result["latency_ns"] else ["requests", "read", "written"], rows)
    facts_of = [("depth", _depth_line(job)) for job in jobs if job["latency_target"]]
    facts_of += [("jobs", f"{len(jobs) - _JOBS:,} more are in the result")] if len(jobs) > _JOBS else []
    if facts_of:
        yield facts(facts_of)


HANDLE_HEADS = ("written", "moved", "WA", "units", "valid", "left")


def handle_rows(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Name and cells (`HANDLE_HEADS`) of each reclaim unit handle in use, and of the controller's own units."""
    fdp = result.get("fdp") or {}
    for each in (*fdp.get("handles", ()), *filter(None, [fdp.get("controller")])):
        if each["reclaim_units"] or each["host_bytes"]:
            name = handle_name(each)
            name = name if name == "controller" else f"handle {name}"
            valid = "-" if each["valid_share"] is None else f"{units.number(100 * each['valid_share'])} %"
            cells = [*(size(each[key]) for key in ("host_bytes", "moved_bytes")), ratio(each["write_amplification"])]
            yield name, [*cells, count(each["reclaim_units"]), valid, size(each["left_bytes"])]


def _depth_line(job: Mapping[str, Any]) -> str:
    """The depths of a job that searched the highest that meets `latency_target`."""
    target = job["latency_target"]
    depths = ", ".join(map(str, target["depths"]))
    share = "all" if target["percentile"] == 100 else f"{target['percentile']:g} % of the"
    longest, window = nanoseconds(target["target_ns"]), nanoseconds(target["window_ns"])
    verb = "meets" if target["met"] else "does not meet"
    return f"{job['job']}: {depths} in flight {verb} the target ({share} requests within {longest}, over {window})"


def _causes(result: Result) -> ByWidth:
    """Flash reads and programs by cause; causes without either are omitted."""
    causes = result["flash"]["by_cause"]
    order = [*CAUSES, *(cause for cause in causes if cause not in CAUSES)]
    active = [cause for cause in order if any(causes.get(cause, {}).values())]
    rows = []
    for kind in ("reads", "programs"):
        total = sum(causes[cause][kind] for cause in causes)
        rows.append((kind, [count(total), *(count(causes[cause][kind]) for cause in active)]))
    return _figures("flash ops", ["total", *active], rows)


def _throughput_line(result: Result) -> str:
    throughput = result["throughput"]
    if not is_modelled(result, ("throughput", "iops")):
        return f"{units.NOT_MODELLED}: the requests take no simulated time on this drive"
    if not throughput or throughput["iops"] is None or not result["simulated_ns"]:
        return "not measured: the run counts operations, and has no times"
    iops = f"{count(throughput['iops'])}{evidence.spread(result, 'throughput.iops')}"
    return (
        f"{iops} IOPS, {units.rate(throughput['bytes_per_s'])} "
        f"over {nanoseconds(result['simulated_ns'])} of simulated time"
    )


_CAUSES = {"gc": "GC", "read_ahead": "read-ahead"}


def amplification(result: Result) -> str:
    """Write amplification by cause, with the reason of the host's part; empty near 1, or if pages are in parts."""
    flash = result["flash"]
    programs = {cause: each["programs"] for cause, each in flash["by_cause"].items() if each["programs"]}
    share = (result["write_amplification"] or 0) / max(1, sum(programs.values()))
    if flash["partial_programs"] or share * max(programs.values(), default=0) <= 1.05:
        return ""
    parts = {cause: f"{_CAUSES.get(cause, cause)} {ratio(share * pages)}" for cause, pages in programs.items()}
    written, page = mean_sizes(result)["write"], units.parse_bytes(config_value(result, "part.page_size"))
    if share * programs.get("host", 0) > 1.05 and written and page and written < page:
        why = "read-modify-write" if flash["by_cause"].get("rmw", {}).get("reads") else "padding"
        parts["host"] += f" ({why}: writes of {size(written)} program pages of {size(page)})"
    return ", ".join(parts.values())


def _flash_rows(result: Result) -> Iterator[tuple[str, str]]:
    flash, host = result["flash"], result["host"]
    reads = result["read_amplification"] or {}
    written = f"{size(host['bytes_read'])} read, {size(host['bytes_written'])} written"
    yield "host", f"{written}; {size(host['bytes_transferred'])} over the host link"
    moved = f"{size(flash['bytes_sensed'])} sensed, {size(flash['bytes_transferred'])} over the flash buses"
    yield "flash", f"{moved}; {size(result['padding_bytes'])} of padding"
    consumed = flash.get("consumed_bytes")
    yield (
        "amplified",
        f"writes {ratio(result['write_amplification'])} (flash bytes programmed / host bytes written)"
        f"{'' if consumed is None else f', {size(consumed)} of flash consumed (erased)'}; "
        f"reads {ratio(reads.get('host'))} host, {ratio(reads.get('gc'))} GC (sensed / wanted)",
    )
    if parts := amplification(result):
        yield "of these", f"writes: {parts}"
    if ahead := result.get("read_ahead"):
        counts = f"{count(ahead['subpages_read'])} subpages read, {count(ahead['subpages_hit'])} hits"
        wasted = f"{count(ahead['subpages_wasted'])} wasted"
        yield "read-ahead", f"{counts}, {wasted}; {size(ahead['buffer_bytes_peak'])} of memory"
    special = {
        "partial_programs": "partial programs",
        "reprograms": "re-programs",
        "read_retries": "read retries",
        "failed_programs": "failed programs",
        "failed_erases": "failed erases",
        "pair_copies": "pages copied before others of their word line",
    }
    more = (f"; {count(flash[key])} {what}" for key, what in special.items() if flash.get(key))
    yield "erases", f"{count(flash['erases'])} blocks{''.join(more)}"


def _cleaning_rows(result: Result) -> Iterator[tuple[str, str]]:
    gc, merge = result["gc"], result["merge"]
    if gc["runs"]:
        moved = gc["moved_subpages"] / gc["erased_blocks"] if gc["erased_blocks"] else None
        yield (
            "gc",
            f"{count(gc['runs'])} runs erased {count(gc['erased_blocks'])} blocks and moved "
            f"{count(gc['moved_subpages'])} subpages ({ratio(moved)} a block); "
            f"{nanoseconds(gc['mean_ns'])} a run, mean; {nanoseconds(gc['p99_ns'])}, p99",
        )
    else:
        yield "gc", "none: free blocks stayed above ftl.gc_start"
    if checkpoint := result.get("checkpoint"):
        programmed = f"{count(checkpoint['begun'])}, programming {size(checkpoint['bytes_programmed'])}"
        yield "checkpoints", f"{programmed} (write amplification {ratio(checkpoint['write_amplification'])} of it)"
    yield from _parity_rows(result)
    yield from _placement_rows(result)
    yield from _zone_rows(result)
    if merge["count"]:
        yield "merges", f"{count(merge['count'])}, moving {count(merge['moved_subpages'])} subpages"


def _placement_rows(result: Result) -> Iterator[tuple[str, str]]:
    if not (fdp := result.get("fdp")):
        return
    drive, events = fdp["configuration"], fdp["events"]
    said = f"{count(drive['handles'])} handles, {drive['isolation']} isolation, "
    said += f"{count(drive['reclaim_units'])} reclaim units of {size(drive['nominal_bytes'])}"
    groups = drive["reclaim_groups"]
    said += f" in {count(groups)} groups" if groups > 1 else ""
    spilled = sum(each.get("spilled_bytes") or 0 for each in fdp["handles"])
    said += f"; {size(spilled)} written to other groups, for want of room" if spilled else ""
    happened = ", ".join(f"{name.replace('_', ' ')} {count(times)}" for name, times in events.items() if times)
    yield "placement", said + (f"; events: {happened}" if happened else "")


def _zone_rows(result: Result) -> Iterator[tuple[str, str]]:
    if not (zns := result.get("zns")):
        return
    states = ", ".join(f"{count(zones)} {name.replace('_', ' ')}" for name, zones in zns["states"].items() if zones)
    yield (
        "zones",
        f"{count(zns['zones'])} of {size(zns['zone_capacity_bytes'])}: {states}; {count(zns['resets'])} resets",
    )
    if changed := zns.get("changed_zones"):
        listed = ", ".join(map(str, changed["zones"])) or "more than 511"
        short = len(listed) < 60
        yield "changed zones", listed if short else f"{count(changed['number'])}, from {changed['zones'][0]} on"
    if area := zns.get("zrwa"):
        yield (
            "random areas",
            f"{size(area['area_bytes'])} each: {size(area['overwritten_bytes'])} overwritten before a commit; "
            f"{count(area['explicit_commits'])} explicit and {count(area['implicit_commits'])} implicit commits",
        )
    failed = ", ".join(f"{name.replace('_', ' ')} {count(times)}" for name, times in zns["errors"].items() if times)
    if failed:
        yield "failed commands", failed


def _parity_rows(result: Result) -> Iterator[tuple[str, str]]:
    rain = result.get("rain")
    if not rain:
        return
    said = f"{count(rain['parity_programs'])} pages, {size(rain['bytes_programmed'])}"
    said += f" (write amplification {ratio(rain['write_amplification'])} of it)"
    if rain["rebuilt_reads"] or rain["failed_rebuilds"]:
        said += f"; {count(rain['rebuilt_reads'])} reads rebuilt, {count(rain['failed_rebuilds'])} not"
    if rain["rebuild_done"] is not None:
        took = f" in {nanoseconds(rain['rebuild_ns'])}" if rain["rebuild_ns"] is not None else ""
        times = rain["rebuild_latency_ns"]
        meanwhile = f", requests meanwhile {nanoseconds(times['p99'])} p99" if times else ""
        unfinished = "" if rain["rebuild_done"] else ", not done"
        said += f"; {count(rain['moved_pages'])} pages moved from a dead die{took}{meanwhile}{unfinished}"
    yield "parity", said


def _fault_rows(result: Result) -> Iterator[tuple[str, str]]:
    power, reliability = result.get("power") or {}, result.get("reliability")
    if power.get("cuts"):
        times, lost = power["recovery_ns"], power["unflushed_writes_lost"]
        took = ", ".join(f"{nanoseconds(times[key])} {name}" for key, name in _RECOVERY.items()) if times else ""
        said = f"of {count(power['cuts'])} power cut{'s' if power['cuts'] > 1 else ''}{f': {took}' if took else ''}; "
        said += f"{count(power['pages_scanned'])} pages scanned, {size(power['bytes_programmed'])} programmed "
        said += f"(write amplification {ratio(power['write_amplification'])} of it)"
        yield "recovery", said + (f"; {count(lost)} unflushed writes lost" if lost else "")
    if reliability:
        said = f"{count(sum(reliability['lost_subpages'].values()))} subpages"
        if reliability["failed_reads"] is not None:
            said += f"; {count(reliability['failed_reads'])} reads of the host failed"
        if dies := reliability["failed_dies"]:
            said += f"; {count(dies)} {'die' if dies == 1 else 'dies'} failed"
        yield "lost data", said


def _cost_rows(result: Result) -> Iterator[tuple[str, str]]:
    mapping, energy, life = result["mapping"], result["energy_uj"], result["lifetime"]
    tables = ", ".join(f"{name} {size(each)}" for name, each in mapping["tables"].items())
    yield "map DRAM", f"{size(mapping['bytes'])} (peak {size(mapping['bytes_peak'])}){f': {tables}' if tables else ''}"
    if energy and energy["total"] is None:
        yield "energy", f"{units.NOT_MODELLED}: the part gives none (part.e_read, part.e_program, part.e_erase)"
    elif energy and (total := energy["total"]):
        parts = {name: value for name, value in energy.items() if name != "total" and value}
        shares = ", ".join(f"{name} {units.percent(round(value / total, 3))}" for name, value in parts.items())
        yield "energy", f"{units.energy(total)}: {shares}"
    power = result.get("power_w") or {}
    if power.get("peak"):
        until = f" over {nanoseconds(power['time_ns'])}, to its last operation" if power.get("time_ns") else ""
        most = f"at most {power['peak']:.3g} W over {nanoseconds(power['window_ns'])}"
        yield "power", f"flash {power['mean']:.3g} W{until}; {most}"
    if life:
        said = f"mean {ratio(life['mean_erases'])} erases a block, max {count(life['max_erases'])}"
        said += f"; {count(life['retired_blocks'])} retired" if life.get("retired_blocks") else ""
        if (projected := life.get("projected_host_bytes")) and not evidence.leaves_out(result, _PROJECTED):
            said += f"; {size(projected)} of host writes over the lifetime"
        if fixed := life.get("slc_fixed"):
            said += f"; fixed fast cache: mean {ratio(fixed['mean_erases'])} erases a block"
        yield "wear", said


_PROJECTED = "lifetime.projected_host_bytes"


def _endurance_rows(result: Result) -> Iterator[tuple[str, str]]:
    found = result.get("endurance")
    if not found or found["waf"] is None:
        return
    text = f"WAF {ratio(found['waf'])}; TBW "
    if found["tbw"] is None:
        yield "endurance", f"{text}not known, as no block was erased"
        return
    if (lasts := evidence.lasts(result)) and lasts.reason:
        yield "endurance", f"{text}not known: {lasts.text}"
        return
    text += f"{units.terabytes(found['tbw'])}, {units.number(found['dwpd_5_years'])} DWPD over 5 years"
    if found["years"] is not None:
        load = f"{units.number(found['dwpd'])} DWPD, {size(found['host_bytes_per_day'])} a day"
        text += f"; {span(found['years'])} {at_rate(result)} ({load})"
    yield "endurance", text


def speed_line(result: Result) -> str:
    """Speed of the simulator: wall time with the precondition, rate of requests without it, memory."""
    sim = result["sim"]
    speed = f"{units.number(sim['wall_s'])} s, {count(round(sim['requests_per_s'] or 0))} requests/s"
    return f"{speed}, {size(sim.get('peak_rss_bytes'))} of memory"


def _waits(result: Result) -> list[tuple[str, list[str]]]:
    """The waits of each tenant for the work of each: a row for each cell of the matrix."""
    heads, rows = tenants.waits(result)
    cells = ((f"{name} {head}", cell.split(": ")) for name, row in rows for head, cell in zip(heads, row, strict=True))
    return [(name, parts) for name, parts in cells if len(parts) > 1]


def render(result: Result) -> RenderableType:
    """The summary for rich."""
    before = precondition_line(result)
    head = [
        ("drive", drive_line(result)),
        ("ftl", str(result["ftl"])),
        *([("before", before)] if before else []),
        ("workload", workload_line(result)),
        ("throughput", _throughput_line(result)),
        *evidence.rows([result]),
    ]
    parts: list[RenderableType] = [facts(head), Text()]
    latency = _latencies(result)
    if latency is not None:
        parts += [latency, Text()]
    volumes = _volumes(result)
    if volumes is not None:
        parts += [volumes, Text()]
    for jobs in _jobs(result):
        parts += [jobs, Text()]
    heads, rows = tenants.rows(result)
    if rows:
        parts += [_figures("tenant", heads, rows), facts(tenants.facts(result)), Text()]
    if waits := _waits(result):
        parts += [_figures("waits", ("a request", "largest causes"), waits), Text()]
    if handles := list(handle_rows(result)):
        parts += [_figures("handle", HANDLE_HEADS, handles), Text()]
    parts += [facts(list(_flash_rows(result))), Text(), _causes(result), Text()]
    last = [*_cleaning_rows(result), *_fault_rows(result), *_cost_rows(result), *_endurance_rows(result)]
    parts.append(facts([*last, ("simulator", speed_line(result))]))
    said = [each.text for each in fair.of_run(result)]
    parts += [Text(f"note: {note}", style="yellow") for note in [*result.get("notes", []), *said]]
    return Group(*parts)
