"""Rules on the conditions of a comparison: promises, units of collection, space, memory, drive, load and length.

A setting that differs is the subject of the comparison if nothing else differs: then the rule says so. Beside another
difference, such as another layer, no figure tells which of the two made the change: then the figures do not compare.
Sources: the promise of a write, docs/results.md; spare space, Desnoyers, Analytic Models of SSD Write Performance, ACM
TOS 2014. Ignored: how large the effect of a difference is.
"""

from collections.abc import Callable

from ..units import percent, size
from .contenders import DRIVE, LAYER, Contender, Field, Found, Weight, listed

_SPARE = frozenset({"ssd.over_provisioning", "ssd.spare"})
_UNIT = frozenset({"ftl.superblocks", "ftl.superblock_planes", "ftl.superblock_dies", "fdp.unit"})
_ANSWER = frozenset({"buffer.ack", "buffer.flush"})
_CACHES = frozenset({"buffer.size", "controller.read_ahead", "controller.read_streams", "ftl.cmt"})
_LOAD = ("host.speedup", "host.iodepth", "host.fold", "host.compact", "host.queues")
_FEATURES = ("ftl.rain", "ftl.checkpoint", "ftl.patrol", "ftl.slc_fixed", "ftl.slc_cache")
_OTHER = ("ecc.", "faults.", "sim.", "controller.", "buffer.", "host.")
_NOTABLE = 1.1
"""Least ratio of spare space or DRAM that is said."""
_SAME_WORK = 1.01
"""Largest ratio of numbers of requests whose totals compare."""


def _promise(of: Contender) -> tuple[str, str] | None:
    found = of.result.get("promise")
    return (found["acknowledged"], found["durable"]) if found else None


def acknowledgement(field: Field) -> Found | None:
    """Contenders acknowledge a write at different places of its data."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in field.all:
        if (promise := _promise(each)) is not None:
            groups.setdefault(promise, []).append(each.label)
    if len({acknowledged for acknowledged, _ in groups}) < 2:
        return None
    said: list[str] = []
    for (acknowledged, durable), names in groups.items():
        verb = "" if said else " acknowledge a write" if len(names) > 1 else " acknowledges a write"
        flush = " (durable by flush)" if durable == "by flush" else ""
        said.append(f"{listed(names)}{verb} {acknowledged}{flush}")
    is_curable = len({durable for _, durable in groups}) == 1
    keys = field.among(_ANSWER.__contains__)
    remedy = field.as_first(keys) if keys else "--set buffer.ack=program --set buffer.flush=programs"
    remedy = remedy if is_curable else None
    return Found("unfair", f"Latencies do not compare, because {', '.join(said)}.", remedy)


def durability(field: Field) -> Found | None:
    """A power cut loses acknowledged writes of some contenders alone."""
    groups: dict[str, list[str]] = {}
    for each in field.all:
        if (promise := _promise(each)) is not None:
            groups.setdefault(promise[1], []).append(each.label)
    if len(groups) < 2:
        return None
    said = "; ".join(f"{listed(names)}: {durable}" for durable, names in groups.items())
    return Found("unfair", f"Writes are durable at different moments ({said}), and later ones cost less.")


def unit(field: Field) -> Found | None:
    """Contenders collect units of different sizes."""
    known = [each for each in field.all if each.basis]
    if not field.differs(lambda each: each.basis.get("unit_bytes")) or DRIVE in field.changed:
        return None
    shown = ", ".join(f"{each.label} {size(each.basis['unit_bytes'])} ({each.basis['unit']})" for each in known)
    sentence = f"Contenders erase units of different sizes: {shown}; a larger one holds more valid data."
    if any(each.basis["unit"] == "zone" for each in known):
        return Found("said", sentence)
    if keys := field.among(_UNIT.__contains__):
        return Found(field.weight(_UNIT.__contains__), sentence, field.as_first(keys))
    is_curable = any(each.basis["unit"] == "reclaim unit" for each in known)
    is_drive = field.changed and all(key.startswith(("ssd.", "part.")) for key in field.changed)
    return Found("said" if is_drive else "unfair", sentence, "--set fdp.unit=block" if is_curable else None)


def _usable(of: Contender) -> float | None:
    """Spare space that the layer can use, over the logical space."""
    space = of.basis
    if not space or not space["logical_bytes"]:
        return None
    over = space["physical_bytes"] / space["logical_bytes"] - 1
    return float(over * (1 - space["reserved_blocks"] / space["spare_blocks"])) if space["spare_blocks"] else over


def spare(field: Field) -> Found | None:
    """Contenders have spare space of different sizes, reserved blocks apart."""
    known = {each.label: share for each in field.all if (share := _usable(each)) is not None}
    if len(known) < 2 or DRIVE in field.changed or max(known.values()) <= _NOTABLE * min(known.values()):
        return None
    shown = ", ".join(f"{label} {percent(round(share, 3))}" for label, share in known.items())
    sentence = f"Contenders have different spare space, reserved blocks apart: {shown}."
    keys = field.among(_SPARE.__contains__)
    weight: Weight = field.weight(_SPARE.__contains__) if keys else "said"
    return Found(weight, sentence, field.as_first(keys) if keys else None)


def dram(field: Field) -> Found | None:
    """Contenders need different memory for the map, the buffer and read-ahead."""
    found = {}
    for each in field.all:
        if (mapping := each.result.get("mapping")) is not None:
            ahead = (each.result.get("read_ahead") or {}).get("buffer_bytes_peak") or 0
            found[each.label] = mapping["bytes_peak"] + each.basis.get("buffer_bytes", 0) + ahead
    if not found or max(found.values()) <= _NOTABLE * min(found.values()):
        return None
    shown = ", ".join(f"{label} {size(value)}" for label, value in found.items())
    return Found("said", f"Contenders need different DRAM for map, buffer and read-ahead: {shown}.")


def _of_keys(field: Field, own: Callable[[str], bool], subject: str) -> Found | None:
    """A finding on changed keys that `own` accepts; None if none changed, or a whole other drive is compared."""
    keys = field.among(own)
    if not keys or DRIVE in field.changed:
        return None
    shown = "; ".join(f"{key} = {field.values(key)}" for key in keys)
    weight = field.weight(own)
    effect = "is the subject" if weight == "said" else "differs beside something else"
    return Found(weight, f"{subject} {effect}: {shown}.", field.as_first(keys) if weight == "unfair" else None)


def caches(field: Field) -> Found | None:
    """Buffers or caches differ."""
    return _of_keys(field, _CACHES.__contains__, "Memory of buffers and caches")


def drive(field: Field) -> Found | None:
    """Another drive, geometry or part."""
    if DRIVE not in field.changed:
        return _of_keys(
            field, lambda key: key.startswith(("ssd.", "part.")) and key not in _SPARE, "Shape or part of the drive"
        )
    is_given = LAYER in field.changed and any(each.options.get("ftl") for each in field.all)
    shown = field.values(DRIVE)
    if not is_given:
        return Found("said", f"The drives are compared as wholes: {shown}.")
    runs = [field.run(each, {"ssd": field.all[0].options.get("ssd", "")}) for each in field.all[1:]]
    return Found("unfair", f"Drive and layer differ both: {shown}.", " ".join(runs))


def conditions(field: Field) -> Found | None:
    """Times of host and controller, errors, faults, parity or scheduling differ."""
    return _of_keys(
        field,
        lambda key: (key.startswith(_OTHER) or key in _FEATURES) and key not in {*_CACHES, *_LOAD, *_ANSWER},
        "A condition",
    )


def load(field: Field) -> Found | None:
    """Requests, their arrivals or their depth differ."""
    return _of_keys(field, lambda key: key in ("--workload", *_LOAD), "The load")


def precondition(field: Field) -> Found | None:
    """Drives were written differently before."""
    return _of_keys(field, "--precondition".__eq__, "Preconditioning")


def warmup(field: Field) -> Found | None:
    """Measurements begin after different warm-ups."""
    return _of_keys(field, "--warmup".__eq__, "The warm-up")


def seed(field: Field) -> Found | None:
    """Contenders have different seeds."""
    return _of_keys(field, "--seed".__eq__, "The seed")


def fidelity(field: Field) -> Found | None:
    """Some contenders have times, others count."""
    return _of_keys(field, "--fidelity".__eq__, "Fidelity")


def payload(field: Field) -> Found | None:
    """Payload or checks differ, which change the simulator's speed alone."""
    if not field.differs(lambda each: (each.result.get("payload"), each.options.get("check"))):
        return None
    return Found("said", "Payload or --check differ: of all figures the simulator's speed alone does not compare.")


def length(field: Field) -> Found | None:
    """Some runs ended early: interrupted, or on a worn-out drive."""
    short = [each.label for each in field.all if each.result.get("interrupted")]
    worn = [each.label for each in field.all if (each.result.get("lifetime") or {}).get("worn_out")]
    if len(worn) == len(field.all):
        worn = []
    said = [f"{listed(names)}: {why}" for names, why in ((short, "interrupted"), (worn, "worn out")) if names]
    if not said:
        return None
    return Found("unfair", f"Runs ended early ({'; '.join(said)}).", labels=tuple(dict.fromkeys([*short, *worn])))


def work(field: Field) -> Found | None:
    """Contenders served different numbers of requests, as runs do that end once their figures are known."""
    served = {each.label: sum((each.result.get("requests") or {}).values()) for each in field.all}
    if not min(served.values()) or max(served.values()) <= _SAME_WORK * min(served.values()):
        return None
    least = min(served, key=served.__getitem__)
    most = max(served, key=served.__getitem__)
    return Found(
        "said",
        f"{most} served {served[most]:,} requests and {least} {served[least]:,}: totals of a run, such as erases and "
        "energy, do not compare.",
    )
