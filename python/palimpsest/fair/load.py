"""Rules on a run and its load: handles without names, an idle drive, open blocks, few erases, caches, steadiness.

Most need one run alone, so that `run` says them, too. Ignored: the size of the effect of a difference.
"""

import math

from .. import evidence
from ..evidence import life, steady
from ..units import count, parse_bytes, percent
from .contenders import Contender, Field, Found, Weight, listed

_BUSY = 0.1
"""Least share of the time that the busiest die or bus must work, so that requests wait for one another."""
_OPEN = 0.5
"""Largest share of the spare blocks of a plane that open blocks may hold."""
_ROOM = 4
"""Spare blocks for an open block that the remedy aims at."""


def _idle_handles(of: Contender) -> str | None:
    """The handles without data, or the classifier without names; None if the workload names these."""
    handles = ((of.result.get("fdp") or {}).get("handles")) or ()
    used = sum(bool(each["host_bytes"]) for each in handles)
    if len(handles) > 1 and used < 2:
        return f"{of.label} has {len(handles)} handles, of which the workload names {used or 'none'}"
    if of.basis.get("named") is False and len(handles) != 1:
        return f"{of.label} places data by names, of which the workload has none"
    return None


def handles(field: Field) -> Found | None:
    """A layer keeps blocks open for handles that the workload does not name."""
    found = {each.label: said for each in field.all if (said := _idle_handles(each))}
    if not found:
        return None
    is_equal = len(found) == len(field.all) and not field.differs(lambda each: each.basis.get("open_blocks"))
    owners = max(len(each.result.get("tenants") or each.result.get("volumes") or ()) for each in field.all)
    has_handles = any((each.result.get("fdp") or {}).get("handles") for each in field.all)
    remedy = None
    if has_handles:
        remedy = field.with_value(*(("ftl.classifier", "owner") if owners > 1 else ("fdp.handles", "1")), found)
    elif any(each.config.get("ftl.classifier", "none") != "none" for each in field.all):
        remedy = field.with_value("ftl.classifier", "none", found)
    said = "; ".join(found.values())
    weight: Weight = "said" if is_equal else "unfair"
    return Found(weight, f"{said}: open blocks take spare space for nothing.", remedy, tuple(found))


def _busiest(of: Contender) -> float | None:
    """The largest busy share of a die or bus in a timed run whose requests have arrival times; None for others."""
    busy = [share for name in ("busy.dies.max", "busy.channels.max") if (share := of.share(name)) is not None]
    return max(busy) if busy and of.basis.get("is_open") else None


def idle(field: Field) -> Found | None:
    """Requests arrive so rarely that the drive is idle, whatever its policy."""
    busy = [_busiest(each) for each in field.all]
    known = [share for share in busy if share is not None]
    if len(known) < len(busy) or max(known) >= _BUSY:
        return None
    most = max(known)
    speed = float(str(field.all[0].config.get("host.speedup", 1)))
    faster = speed * min(_BUSY * 5 / most, 1e6) if most else speed * 1000
    digits = max(0, math.floor(math.log10(faster)) - 1)
    remedy = f"--set host.speedup={round(faster, -digits):g}"
    shown = f"at most {percent(round(most, 4))} of the time"
    return Found(
        "unfair" if len(busy) > 1 else "said",
        f"The busiest die or bus works {shown}: requests hardly wait, and response times show no policy.",
        remedy,
    )


def _open_share(of: Contender) -> float | None:
    """Open blocks over the spare blocks that the layer can use; None if the host opens zones."""
    blocks, has = of.basis.get("open_blocks"), of.basis.get("spare_blocks", 0) - of.basis.get("reserved_blocks", 0)
    return None if blocks is None or has <= 0 else blocks / has


def open_blocks(field: Field) -> Found | None:
    """Open blocks hold most of the spare space of a small drive."""
    shares = {each.label: share for each in field.all if (share := _open_share(each)) is not None}
    tight = [each for each in field.all if shares.get(each.label, 0) > _OPEN]
    if not tight:
        return None
    worst = max(tight, key=lambda each: shares[each.label])
    has = worst.basis["spare_blocks"] - worst.basis["reserved_blocks"]
    by = max(2, math.ceil(_ROOM * shares[worst.label]))
    capacity = parse_bytes(worst.config.get("ssd.capacity"))
    remedy = f"--set ssd.blocks_per_plane={by * int(worst.config.get('ssd.blocks_per_plane', 0))}"
    if capacity:
        remedy = f"--set ssd.capacity={by * capacity // 2**20}MiB"
    is_unlike = len(shares) > 1 and field.differs(lambda each: each.basis.get("open_blocks"))
    held = f"open blocks of {worst.label} hold {worst.basis['open_blocks']} of {has} spare blocks of a plane"
    effect = "a stream costs more than on a drive of full size" if is_unlike else "a drive of full size writes less"
    labels = tuple(each.label for each in tight)
    return Found("unfair" if is_unlike else "said", f"{held[0].upper()}{held[1:]}: {effect}.", remedy, labels)


def _erases(of: Contender) -> tuple[float, int] | None:
    """Mean erases of a block in the measurement, and the least for a lifetime; None without a lifetime."""
    mean = life.erases_a_block(of.result)
    has_none = mean is None or (of.result.get("endurance") or {}).get("tbw") is None
    return None if has_none or mean is None else (mean, life.needed(of.result))


def erases(field: Field) -> Found | None:
    """Blocks were erased too rarely for a word on lifetime."""
    found = {each.label: each_found for each in field.all if (each_found := _erases(each))}
    few = {label: mean for label, (mean, least) in found.items() if mean < least}
    if not few:
        return None
    shown = listed([f"{mean:.2g} ({label})" for label, mean in few.items()])
    least = max(least for label, (_, least) in found.items() if label in few)
    writes = [
        each.result["endurance"]["drive_writes"] * least / few[each.label]
        for each in field.all
        if few.get(each.label) and (each.result.get("endurance") or {}).get("drive_writes")
    ]
    remedy = f"--repeat {math.ceil(max(writes)) + 1}dw" if writes else None
    return Found(
        "said", f"Lifetimes do not compare: mean erases of a block are {shown}; expected {least}.", remedy, tuple(few)
    )


def cached_map(field: Field) -> Found | None:
    """The cache of the map never evicted an entry, so that the map cost nothing."""
    evicted = {each.label: (each.result.get("ftl_stats") or {}).get("map_evictions") for each in field.all}
    whole = [label for label, number in evicted.items() if number == 0]
    if not whole or len(evicted) < 2 or len(whole) == len(evicted):
        return None
    others = [label for label, number in evicted.items() if number]
    beside = f", unlike the cache of {listed(others)}" if others else ""
    return Found(
        "said", f"The map cache of {listed(whole)} never evicts, as if the whole map were in DRAM{beside}.",
        labels=tuple(whole),
    )  # fmt: skip


_JUDGED = {"throughput.iops": "IOPS", "latency_ns.all.p99": "p99", "write_amplification": "write amplification"}


def steadiness(field: Field) -> Found | None:
    """Some contenders are steady in a figure, others not."""
    said, labels = [], dict[str, None]()
    for figure, name in _JUDGED.items():
        verdicts = {each.label: evidence.of(each.result, figure).verdict for each in field.all}
        not_steady = [label for label, verdict in verdicts.items() if verdict != "yes"]
        if 0 < len(not_steady) < len(verdicts):
            said.append(f"{name} of {listed(not_steady)}")
            labels |= dict.fromkeys(not_steady)
    if not said:
        return None
    needs = [(each.result.get("steady") or {}).get("needs_requests") for each in field.all]
    most = max((need for need in needs if need), default=None)
    more = f"; expected about {count(most)} requests" if most else ""
    return Found("said", steady.unlike(said, more), labels=tuple(labels))
