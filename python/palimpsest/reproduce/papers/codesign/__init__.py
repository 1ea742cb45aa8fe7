"""The co-design paper: Qiu et al., on building flash storage by co-designing file system and FTL.

Models map bytes, Fig. 2 and Fig. 6 to 8 and the numbers of Sec. IV, on synthetic workloads with the read ratios and
request sizes of the paper's traces. The paper fixes 8 channels, the times of flash (Table I), and read ratio and mean
request size of four traces (Sec. IV). Beyond the paper: one more scheme, the cost of DRAM permission exchanges, layers
below the file system, hints, and real traces of a user (`[real]`).

The implied setting has the causes that the paper names: under round robin in order of arrival some files are on few
channels, because they are appended in strict turns; reads of them wait for the fullest channel, and reads of hot files
make channels busy. `tools/codesign_search.py` states the objective of the search and repeats it. Switching each cause
off (`[mechanism]`) shows which gain rests on which cause. Numbers alone allow another setting, see docs/reproduce.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from ....result import Result
from ...claims import Claim
from ...measures import change, iops, response_ns
from ...study import Point, Study

__all__ = [
    "causes_of", "claims", "effects", "headroom", "imbalance", "implied_claims", "implied_gains", "metadata_percent",
    "near_claims", "partial_percent", "percent", "round_robins_of",
]  # fmt: skip

Gains = dict[str, dict[str, tuple[float, float]]]
"""Changes of mean response time and of throughput in percent, by scheme and workload."""


def percent(share: float | None) -> float | None:
    """A share in percent; None if nothing was measured."""
    return None if share is None else 100 * share


def metadata_percent(result: Mapping[str, Any] | Result) -> float:
    """Pages of metadata among all programmed."""
    causes = result["flash"]["by_cause"]
    return float(100 * causes["metadata"]["programs"] / sum(each["programs"] for each in causes.values()))


def partial_percent(causes: Mapping[str, Any]) -> float | None:
    """Pages that are read because a request writes a part of them, among the pages that the host programs."""
    programs = causes["host"]["programs"] + causes["rmw"]["programs"]
    return 100 * causes["rmw"]["reads"] / programs if programs else None


# Tables


def imbalance(study: Study, _point: Point) -> pl.DataFrame:
    """How unevenly files lie over the channels at the end of a run, beside the paper's two shares."""
    rows: list[dict[str, Any]] = []
    for workload, (uneven, above) in study.names["uneven"].items():
        for scheme in study.names["schemes"][:2]:
            stats = study.result("main", workload=workload, scheme=scheme)["ftl_stats"]
            before = 0.0
            for name, share in stats.items():
                if name.startswith("imbalance_cdf_"):
                    row = {"workload": workload, "scheme": scheme, "rate": float(name.removeprefix("imbalance_cdf_"))}
                    rows.append(row | {"pdf_percent": 100 * (share - before), "cdf_percent": 100 * share})
                    before = share
        row = {"workload": workload, "scheme": "rr, paper", "pdf_percent": None}
        rows += [row | {"rate": 0.0, "cdf_percent": 100 - uneven}, row | {"rate": 1.0, "cdf_percent": 100 - above}]
    data = pl.DataFrame(rows, infer_schema_length=None)
    return data.with_columns(line=pl.col("workload") + ", " + pl.col("scheme"))


def headroom(study: Study, _point: Point) -> pl.DataFrame:
    """The most that a scheme which removes no work can gain over each meaning of round robin.

    With a fixed number of requests in flight, mean response time falls by at most 1 - rho, where rho is the share of
    the time that dies, or channels if these are busier, work under the baseline: then they work all the time.
    """
    rows = []
    seeds = study.names["seeds"]
    for name in study.names["workloads"]:
        for base in study.names["round_robins"]:
            shares: dict[str, float] = {}
            for seed in seeds:
                busy = study.result("main", workload=name, scheme=base, seed=seed).to_polars("utilization")
                for kind, mean in busy.group_by("kind").agg(pl.col("busy").mean()).iter_rows():
                    shares[kind] = shares.get(kind, 0.0) + mean / len(seeds)
            row = {"workload": name, "base": base, "dies_percent": 100 * shares["dies"]}
            row |= {"channels_percent": 100 * shares["channels"], "bound_percent": 100 * (max(shares.values()) - 1)}
            rows.append(row)
    return pl.DataFrame(rows)


def round_robins_of(study: Study, _point: Point) -> pl.DataFrame:
    """Changes of mean response time by each scheme, against each meaning of round robin."""
    names = study.names
    rows = []
    for workload in names["workloads"]:
        for base in names["round_robins"]:
            for scheme in (*names["schemes"][1:], names["own_scheme"]):
                row = {"workload": workload, "base": base, "scheme": scheme}
                row["change_percent"] = _over(study, scheme, workload, base)
                rows.append(row | _ends(study, scheme))
    return pl.DataFrame(rows, infer_schema_length=None)


def implied_gains(study: Study, _point: Point) -> pl.DataFrame:
    """Fig. 7 at the implied setting: means over seeds, the range of the paper, and the spread."""
    each = [_gains(study, "compared", study.implied, seed=seed) for seed in study.names["seeds"]]
    rows = []
    for workload in study.names["workloads"]:
        for scheme in study.names["compared"][1:]:
            own = [gains[scheme][workload][0] for gains in each]
            row = {"workload": workload, "scheme": scheme, "change_percent": sum(own) / len(own)}
            row |= {"change_percent_low": min(own), "change_percent_high": max(own)}
            rows.append(row | _ends(study, scheme))
    return pl.DataFrame(rows, infer_schema_length=None)


def causes_of(study: Study, point: Point) -> pl.DataFrame:
    """Changes of mean response time by each scheme, with all mechanisms and with each switched off; one seed."""
    rows = [
        {"off": name or "as found", "workload": workload, "scheme": scheme, "change_percent": response}
        for name, (_says, changed) in study.mechanisms(point).items()
        for scheme, own in _gains(study, "compared", changed, seed=1).items()
        for workload, (response, _) in own.items()
    ]
    return pl.DataFrame(rows)


def _ends(study: Study, scheme: str) -> dict[str, float | None]:
    return {f"paper_{which}": study.names["response"].get(f"{scheme}_{which}") for which in ("least", "most")}


# Effects


def effects(study: Study, point: Point) -> dict[str, float | None]:
    """The effects on mean response time at a point."""
    found: dict[str, float | None] = {}
    base = point.get("base", "rr")
    for scheme in study.names["schemes"][1:]:
        changes = []
        for workload in study.names["workloads"]:
            result = study.at("swept", point, workload=workload)
            changes.append(change(response_ns(result(scheme=scheme)), response_ns(result(scheme=base))))
        known = [each for each in changes if each is not None]
        found |= {f"{scheme}_least": max(known, default=None), f"{scheme}_most": min(known, default=None)}
    return found


def _gains(study: Study, grid: str, point: Point, **fixed: Any) -> Gains:  # noqa: ANN401 - values of axes
    """The gains of each scheme over round robin in the cells of a grid."""
    base, *schemes = study.names["compared"]
    found: Gains = {scheme: {} for scheme in schemes}
    for workload in study.names["workloads"]:
        result = study.at(grid, point, workload=workload, **fixed)
        two = result(scheme=base)
        for scheme, own in found.items():
            one = result(scheme=scheme)
            response = change(response_ns(one), response_ns(two)) or 0.0
            own[workload] = (response, change(iops(one), iops(two)) or 0.0)
    return found


def _mean_gains(each: list[Gains]) -> Gains:
    """Means over seeds."""
    first, count = each[0], len(each)
    return {
        scheme: {
            name: (sum(one[scheme][name][0] for one in each) / count, sum(one[scheme][name][1] for one in each) / count)
            for name in own
        }
        for scheme, own in first.items()
    }


def _value(study: Study, scheme: str, workload: str, column: str) -> float:
    """One number of the table `main`."""
    chosen = (pl.col("scheme") == scheme) & (pl.col("workload") == workload)
    return float(study.table("main").row(by_predicate=chosen, named=True)[column])


def _over(study: Study, scheme: str, workload: str, base: str) -> float | None:
    """Change of mean response time from `base` in percent."""
    return change(*(_value(study, each, workload, "response_us") for each in (scheme, base)))


def _by_workload(study: Study, scheme: str, base: str) -> dict[str, float]:
    return {name: _over(study, scheme, name, base) or 0.0 for name in study.names["workloads"]}


def _column(study: Study, scheme: str, column: str) -> dict[str, float]:
    return {name: _value(study, scheme, name, column) for name in study.names["workloads"]}


def _listed(values: Mapping[str, float], number: str = "+.1f") -> str:
    return ", ".join(f"{name} {value:{number}}" for name, value in values.items())


# Claims


def claims(study: Study) -> list[Claim]:
    """The claims at the assumed setting, each claim that does not agree with the measured reason."""
    gains = {scheme: _column(study, scheme, "response_change_percent") for scheme in study.names["schemes"][1:]}
    faster = _column(study, "hybrid", "throughput_change_percent")
    return [
        *_cost_claims(study),
        *_imbalance_claims(study),
        *_effect_claims(study, gains),
        *_averages(study, zip(gains["hybrid"].values(), faster.values(), strict=True)),
        *_by_address_claims(study),
        *_orders(study, gains),
    ]


def _cost_claims(study: Study) -> Iterator[Claim]:
    first, *_ = workloads = study.names["workloads"]
    drive = {scheme: _value(study, scheme, first, "map_bytes") for scheme in ("page", "fs-page", "rr")}
    # Two bits a page: the table of page states says how many pages the layer below maps.
    mapped = {scheme: 4 * _value(study, scheme, first, "page_state_bytes") for scheme in ("fs-page", "rr")}
    per_page = {scheme: drive[scheme] / pages for scheme, pages in mapped.items()}
    yield study.claim("map", 100 * per_page["rr"] / per_page["fs-page"]).with_note(study.note("map", drive=drive))
    response = {scheme: _column(study, scheme, "response_us") for scheme in ("rr", "page", "fs-page")}
    ratios = {name: response["rr"][name] / response["page"][name] for name in workloads}
    worst = max(ratios, key=lambda name: abs(ratios[name] - 1))
    note = study.note("page_map", worst=worst, layered=response["rr"][worst] / response["fs-page"][worst])
    yield study.claim("page_map", ratios[worst]).with_note(note)
    reads = {scheme: _column(study, scheme, "read_us") for scheme in ("hybrid", "by-channel")}
    slower = {name: change(own, reads["by-channel"][name]) or 0.0 for name, own in reads["hybrid"].items()}
    yield study.claim("reads", max(slower.values())).with_note(study.note("reads", each=_listed(slower)))
    shares = dict(study.table("long").select("workload", "percent").iter_rows())
    yield study.claim("metadata", max(shares.values())).with_note(study.note("metadata", each=_listed(shares, ".1f")))
    slower = {}
    for name in workloads:
        own, free = (study.result(grid, workload=name, scheme="rr") for grid in ("main", "free"))
        slower[name] = change(response_ns(own), response_ns(free)) or 0.0
    note = study.note("hand_over", each=_listed(slower, "+.2f"))
    yield study.claim("hand_over", max(slower.values())).with_note(note)


def _imbalance_claims(study: Study) -> Iterator[Claim]:
    for workload in study.names["uneven"]:
        for which in ("uneven", "above_1"):
            ours = _value(study, "rr", workload, f"{which}_percent")
            claim = study.claim(f"{which}_{workload}", ours, of=which, workload=workload)
            yield claim.with_note(study.note("uneven"))


def _effect_claims(study: Study, gains: Mapping[str, Mapping[str, float]]) -> Iterator[Claim]:
    bounds = study.table("headroom").filter(pl.col("base") == "rr")
    room = _listed(dict(bounds.select("workload", "bound_percent").iter_rows()))
    for scheme, own in gains.items():
        faster = _column(study, scheme, "throughput_change_percent")
        low, high = (_column(study, scheme, f"response_change_percent_{end}") for end in ("low", "high"))
        points = max(high[name] - low[name] for name in own)
        for which, pick, gain in (("least", max, min), ("most", min, max)):
            name = f"{scheme}_{which}"
            claim = study.claim(name, pick(own.values()))
            note = study.note("response", each=_listed(own), points=points)
            if not claim.agrees:
                note += study.note("headroom", room=room) + study.data["notes"]["because"][scheme]
                note += _bases(study, scheme) + study.reason(name)
            yield claim.with_note(note.strip())
            made = study.claim(f"throughput_{name}", gain(faster.values()), of="throughput", scheme=scheme, which=which)
            inverse = study.note("inverse", inverse=change(1.0, 1 + study.names["response"][name] / 100))
            yield made.with_note(inverse + ("" if made.agrees else f"See {name} for the reason."))


def _bases(study: Study, scheme: str) -> str:
    """The same effect against page maps in which addresses name channels, or planes."""
    own = {
        base.replace("-", "_"): ", ".join(f"{value:+.1f}" for value in _by_workload(study, scheme, base).values())
        for base in study.names["round_robins"][1:]
    }
    return study.note("bases", scheme=scheme, **own)


def _by_address_claims(study: Study) -> Iterator[Claim]:
    """The same effects against the other meaning of the paper's baseline."""
    for scheme in study.names["schemes"][1:]:
        own, planes = (_by_workload(study, scheme, base) for base in study.names["round_robins"][1:])
        for which, pick in (("least", max), ("most", min)):
            cell = {"scheme": scheme, "which": which}
            made = study.claim(f"{scheme}_{which}_by_address", pick(own.values()), of="by_address", **cell)
            note = study.note("by_address", each=_listed(own), which=which, planes=pick(planes.values()))
            yield made.with_note(note)


def _averages(study: Study, hybrid: Iterable[tuple[float, float]]) -> Iterator[Claim]:
    """The averages of the abstract, from the changes of response time and throughput by hybrid."""
    for which, changes in zip(("response", "throughput"), zip(*hybrid, strict=True), strict=True):
        claim = study.claim(f"average_{which}", sum(changes) / len(changes), of="average", which=which)
        yield claim.with_note("See hybrid_least and hybrid_most for the four workloads.")


def _orders(study: Study, gains: Mapping[str, Mapping[str, float]]) -> Iterator[Claim]:
    """The workload that gains most from each scheme, and that hybrid gains most, from changes of response time."""
    for scheme, workload in study.names["gains_most"].items():
        own = gains[scheme]
        if workload not in own:  # only some of the real traces were found
            continue
        best = min(own, key=lambda name: own[name])
        because = study.data["notes"]["because"][scheme]
        note = "" if best == workload else study.note("most", best=best, gain=own[best], because=because)
        cell = {"scheme": scheme, "workload": workload, "best": best}
        yield study.claim(f"{scheme}_workload", own[workload], of="most", **cell).with_note(note.strip())
    fairness = gains["fairness"]
    least = max(fairness, key=lambda name: fairness[name])
    if "development" in fairness:
        claim = study.claim("fairness_least_workload", fairness["development"], of="least", least=least)
        note = "" if claim.agrees else f"Measured here, {least} gains least ({fairness[least]:+.1f} %)."
        yield claim.with_note(note)
    parts = study.names["schemes"][1:4]
    workloads = study.names["workloads"]
    short = max(gains["hybrid"][name] - min(gains[scheme][name] for scheme in parts) for name in workloads)
    claim = study.claim("hybrid_best", short)
    yield claim if claim.agrees else claim.with_note(study.note("hybrid_best"))


def near_claims(study: Study, point: Point) -> list[Claim]:
    """The claims on response times at one seed of a point."""
    found = _scheme_claims(study, _gains(study, "compared", point, seed=1))
    return [claim for claim in found if "throughput" not in claim.id]


def implied_claims(study: Study) -> list[Claim]:
    """The claims at the implied setting: on schemes, files, page maps and metadata."""
    seeds = study.names["seeds"]
    gains = _mean_gains([_gains(study, "compared", study.implied, seed=seed) for seed in seeds])
    found = list(_scheme_claims(study, gains))
    base = {
        name: study.result("compared", study.implied, scheme="rr", workload=name, seed=1)
        for name in study.names["workloads"]
    }
    found.append(study.claim("metadata", max(metadata_percent(result) for result in base.values())))
    for workload in study.names["uneven"]:
        for which in ("uneven", "above_1"):
            ours = percent(base[workload]["ftl_stats"][f"imbalance_{which}"])
            found.append(study.claim(f"{which}_{workload}", ours, of=which, workload=workload))
    ratios, slower = {}, {}
    for name, result in base.items():
        maps = study.at("page_maps", study.implied, workload=name, seed=1)
        ratios[name] = response_ns(result) / response_ns(maps(scheme="page"))
        hybrid = study.result("compared", study.implied, scheme="hybrid", workload=name, seed=1)
        reads = [float(each["latency_ns"]["read"]["mean"]) for each in (hybrid, maps(scheme="by-channel"))]
        slower[name] = change(*reads) or 0.0
    worst = max(ratios, key=lambda name: abs(ratios[name] - 1))
    found.append(study.claim("page_map", ratios[worst]))
    found.append(study.claim("reads", max(slower.values())).with_note(f"Implied, by workload: {_listed(slower)}."))
    return found


def _scheme_claims(study: Study, gains: Gains) -> Iterator[Claim]:
    """The claims on schemes, from their gains over round robin."""
    responses = {scheme: {name: one for name, (one, _) in own.items()} for scheme, own in gains.items()}
    for scheme in study.names["schemes"][1:]:
        rates = [rate for _, rate in gains[scheme].values()]
        for which, pick, gain in (("least", max, min), ("most", min, max)):
            name = f"{scheme}_{which}"
            claim = study.claim(name, pick(responses[scheme].values()))
            yield claim.with_note(f"Implied, by workload: {_listed(responses[scheme])}.")
            yield study.claim(f"throughput_{name}", gain(rates), of="throughput", scheme=scheme, which=which)
    yield from _averages(study, gains["hybrid"].values())
    yield from _orders(study, responses)
