"""A configuration of SimpleSSD (`*.cfg`, sections with NAME = VALUE) in keys of ours.

Names and defaults are those of SimpleSSD's commit 2be3716. Ignored: the controller's processor and DRAM as models
(`[cpu]`, `[dram]`), and SATA and UFS, because the simulator above SimpleSSD chooses the interface: NVMe is taken.
"""

import re
from pathlib import Path

from ..errors import InputError
from ..files import LARGEST_TEXT
from .elements import Elements, printable
from .record import Imported, percent, size, time

PAL = {
    "Channel": "8", "Package": "4", "Die": "2", "Plane": "1", "Block": "512", "Page": "512", "PageSize": "16384",
    "EnableMultiPlaneOperation": "1", "NANDType": "1", "LSBRead": "40000000", "LSBWrite": "500000000", "CSBRead": "0",
    "CSBWrite": "0", "MSBRead": "65000000", "MSBWrite": "1300000000", "Erase": "3500000000", "DMASpeed": "400",
    "DMAWidth": "8", "SuperblockSize": "", "PageAllocation": "CWDP",
}  # fmt: skip
FTL = {
    "MappingMode": "0", "OverProvisioningRatio": "0.25", "EraseThreshold": "100000", "FillingMode": "0",
    "FillRatio": "0", "InvalidPageRatio": "0", "EvictPolicy": "0", "DChoiceParam": "3", "GCThreshold": "0.05",
    "GCMode": "0", "GCReclaimBlocks": "1", "GCReclaimThreshold": "0.1", "EnableRandomIOTweak": "1",
}  # fmt: skip
ICL = {
    "CacheSize": "33554432", "CacheWaySize": "1", "EnableReadCache": "0", "EnableReadPrefetch": "0",
    "ReadPrefetchMode": "1", "ReadPrefetchCount": "1", "ReadPrefetchRatio": "0.5", "EnableWriteCache": "1",
    "EvictPolicy": "2", "EvictMode": "1", "CacheLatency": "10",
}  # fmt: skip
NVME = {"PCIEGeneration": "2", "PCIELane": "4"}
_GENERATIONS = (250_000_000, 500_000_000, 984_615_384)
"""Bytes a second of a lane of PCIe 1, 2 and 3, without its line code."""
_SECTION, _LINE = re.compile(r"\[([^\]]*)\]"), re.compile(r"([^=:]+)[=:](.*)")
_OTHERS = {
    "cpu": "the controller's processors are not simulated: controller.* has times of requests",
    "dram": "the controller's DRAM is not simulated: buffer.t_write has a time",
    "sata": "the drive has NVMe; SimpleSSD reads it under SATA only",
    "ufs": "the drive has NVMe; SimpleSSD reads it under UFS only",
    "global": "the simulator above SimpleSSD reads it",
}


def convert(path: Path) -> Imported:
    """Maps a configuration. Raises InputError if this is none of SimpleSSD, or for a wrong value."""
    found = _sections(path)
    of = Imported("SimpleSSD")
    known = {"pal": PAL, "ftl": FTL, "icl": ICL, "nvme": NVME}
    pal, ftl, icl, nvme = (
        Elements(f"{path}: [{name}]", found.get(name, {}), of, defaults) for name, defaults in known.items()
    )
    dies = _flash(pal, of)
    _layer(ftl, pal, of)
    _precondition(ftl, of)
    _cache(icl, of, dies)
    lane = nvme.count("PCIEGeneration", 0, 2)
    rate = _GENERATIONS[lane] * nvme.count("PCIELane", 1, 64)
    of.same(nvme.shown("PCIEGeneration", "PCIELane"), ("host.link_rate", f"{rate}B/s"))
    for section, defaults, why in (
        (pal, PAL, "this is not a name of SimpleSSD's flash, or a power, which is not mapped"),
        (ftl, FTL, "this is not a name of SimpleSSD's FTL"),
        (icl, ICL, "this is not a name of SimpleSSD's cache"),
        (nvme, NVME, "the work of the NVMe controller has no time here"),
    ):
        section.rest(why, defaults)
    for name, values in found.items():
        if name not in known:
            why = _OTHERS.get(name, "SimpleSSD does not read this section")
            of.lost(f"[{name}] with {', '.join(values) or 'nothing'}", why)
    return of


def _sections(path: Path) -> dict[str, dict[str, str]]:
    expected = "expected a configuration of SimpleSSD, with [pal] and NAME = VALUE"
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_TEXT).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {expected}") from error
    found: dict[str, dict[str, str]] = {}
    section = None
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        line = re.split(r"(?:^|\s)#|^\s*;", raw)[0].strip()
        if not line:
            continue
        if named := _SECTION.fullmatch(line):
            section = found.setdefault(printable(named[1].strip()).lower(), {})
        elif section is not None and (pair := _LINE.fullmatch(line)):
            section[printable(pair[1].strip())] = pair[2].strip()
        else:
            raise InputError(f"{path}:{number}: found {printable(line)!r}; {expected}")
    if "pal" not in found:
        raise InputError(f"{path}: there is no section [pal]; {expected}")
    return found


def _flash(pal: Elements, of: Imported) -> int:
    """Maps the flash; returns the number of dies."""
    dies = 1
    for name, key in (
        ("Channel", "ssd.channels"), ("Package", "ssd.chips_per_channel"), ("Die", "ssd.dies_per_chip"),
        ("Plane", "ssd.planes_per_die"), ("Block", "ssd.blocks_per_plane"), ("Page", "part.pages_per_block"),
    ):  # fmt: skip
        count = pal.count(name, 1, 65536)
        of.same(pal.shown(name), (key, count))
        dies *= count if key in ("ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip") else 1
    page = pal.count("PageSize", 512, 1 << 20)
    if page % 512:
        raise pal.error("PageSize", f"found {page}", "a multiple of 512 bytes")
    unit = 4096 if page % 4096 == 0 else page
    keys = (("part.page_size", size(page)), ("part.subpage_size", size(unit)), ("part.word_size", size(unit)))
    of.same(pal.shown("PageSize"), *keys)
    cell = ("slc", "mlc", "tlc")[pal.count("NANDType", 0, 2)]
    of.same(pal.shown("NANDType"), ("part.cell", cell))
    pages = {"slc": ("LSB",), "mlc": ("LSB", "MSB"), "tlc": ("LSB", "CSB", "MSB")}[cell]
    for verb, key in (("Read", "part.t_read"), ("Write", "part.t_program")):
        names = [f"{each}{verb}" for each in pages]
        times = [pal.count(name, 0, 10**15) // 1000 for name in names]
        shown = pal.shown(*names)
        if cell == "mlc":
            of.same(shown, (key, time(times[0])), (f"{key}_high", time(times[1])))
        elif cell == "slc" or len(set(times)) == 1:
            of.same(shown, (key, time(times[0])))
        elif verb == "Read":
            of.same(shown, (key, time(sum(times) // 3)), ("part.t_read_types", [time(each) for each in times]))
        else:
            of.near(shown, "programs of TLC pages take one time, the mean", (key, time(sum(times) // 3)))
        pal.skip(
            f"{cell.upper()} has no such pages", *(f"{each}{verb}" for each in ("CSB", "MSB") if each not in pages)
        )
    of.same(pal.shown("Erase"), ("part.t_erase", time(pal.count("Erase", 0, 10**15) // 1000)))
    width = pal.count("DMAWidth", 8, 64)
    rate = pal.count("DMASpeed", 1, 10**6) * 10**6 * width // 8
    of.same(pal.shown("DMASpeed", "DMAWidth"), ("part.bus_rate", f"{rate}B/s"))
    together = pal.flag("EnableMultiPlaneOperation")
    why = "operations of the planes of a die that wait together; SimpleSSD maps the planes as one page"
    if together:
        of.near(pal.shown("EnableMultiPlaneOperation"), why, ("sim.multi_plane", "waiting"))
    else:
        of.same(pal.shown("EnableMultiPlaneOperation"), ("sim.multi_plane", "off"))
    of.keys["part.order"] = ("strict", "pages of a block in order")
    of.keys["part.nop"] = (1, "a page is programmed once")
    return dies


def _layer(ftl: Elements, pal: Elements, of: Imported) -> None:
    ftl.count("MappingMode", 0, 0)
    of.same(ftl.shown("MappingMode"), ("ftl.name", "page"))
    ratio = ftl.real("OverProvisioningRatio", 0.0001, 0.9)
    of.same(ftl.shown("OverProvisioningRatio"), ("ssd.over_provisioning", percent(ratio / (1 - ratio))))
    of.same(ftl.shown("EraseThreshold"), ("part.endurance", ftl.count("EraseThreshold", 1, 2**31)))
    order, key = pal.text("PageAllocation").upper(), ("ftl.allocation", "static")
    if sorted(order) != sorted("CWDP"):
        raise pal.error("PageAllocation", f"found {printable(order)!r}", "the letters C, W, D and P in an order")
    if order in ("CWDP", "CDWP"):
        of.same(pal.shown("PageAllocation"), key)
    else:
        of.near(pal.shown("PageAllocation"), "the address names the plane, channels first (CWDP)", key)
    if pal.text("SuperblockSize"):
        of.lost(pal.shown("SuperblockSize"), "blocks are collected one by one, and pages mapped one by one")
    why = "writes smaller than a superpage program their pages only, as with the tweak on"
    if ftl.flag("EnableRandomIOTweak"):
        of.about("same", ftl.shown("EnableRandomIOTweak"), "", why)
    else:
        of.lost(ftl.shown("EnableRandomIOTweak"), why)
    policy, shown = ftl.count("EvictPolicy", 0, 3), ftl.shown("EvictPolicy")
    choices = ftl.count("DChoiceParam", 1, 10**6)
    of.same(shown, ("ftl.victim", ("greedy", "cost-benefit", "d-choices:1", f"d-choices:{choices}")[policy]))
    if policy == 3:
        of.about("same", ftl.shown("DChoiceParam"), "ftl.victim")
    else:
        of.lost(ftl.shown("DChoiceParam"), "only EvictPolicy = 3 reads it")
    _thresholds(ftl, pal.count("Block"), of)


def _thresholds(ftl: Elements, blocks: int, of: Imported) -> None:
    start = max(int(ftl.real("GCThreshold", 0, 1) * blocks), 1)
    why = "free blocks of a plane; SimpleSSD counts those of the drive"
    of.near(ftl.shown("GCThreshold"), why, ("ftl.gc_start", f"{start} blocks"))
    mode = ftl.count("GCMode", 0, 1)
    reclaimed = ftl.count("GCReclaimBlocks", 1, 65536)
    until = max(int(ftl.real("GCReclaimThreshold", 0, 1) * blocks), 1)
    names = ("GCReclaimBlocks", "GCReclaimThreshold")
    stop = start + reclaimed - 1 if mode == 0 else max(until, start)
    why = "collection ends with so many free blocks in the plane"
    of.near(ftl.shown("GCMode", names[mode]), why, ("ftl.gc_stop", f"{stop} blocks"))
    of.lost(ftl.shown(names[1 - mode]), f"GCMode = {mode} does not read it")


def _precondition(ftl: Elements, of: Imported) -> None:
    filled, invalid = ftl.real("FillRatio", 0, 1), ftl.real("InvalidPageRatio", 0, 1)
    mode = ftl.count("FillingMode", 0, 2)
    if not filled:
        spec = "none"
    else:
        spec = f"fill:{percent(round(filled, 4))}" + (f",random:{invalid / filled:.2g}x" if invalid else "")
    shown = ftl.shown("FillingMode", "FillRatio", "InvalidPageRatio")
    exact = mode == 1 or not filled or (mode == 0 and not invalid)
    why = "" if exact else "the fill is in order, and overwrites are random"
    of.about("same" if exact else "approximated", shown, f"--precondition {spec}", why)
    of.options["precondition"] = spec


def _cache(icl: Elements, of: Imported, dies: int) -> None:
    writes = icl.flag("EnableWriteCache")
    of.same(icl.shown("EnableWriteCache"), ("buffer.ack", "buffer" if writes else "program"))
    capacity = icl.count("CacheSize", 0, 2**40)
    if writes:
        why = "holds written data until its program ends; SimpleSSD programs when room is needed"
        of.near(icl.shown("CacheSize"), why, ("buffer.size", size(max(capacity, 1 << 20))))
    else:
        of.lost(icl.shown("CacheSize"), "the write cache is off")
    if icl.flag("EnableReadCache"):
        of.lost(icl.shown("EnableReadCache"), "no data is cached for reads, but what is read ahead")
    else:
        of.about("same", icl.shown("EnableReadCache"), "")
    names = ("EnableReadPrefetch", "ReadPrefetchMode")
    if icl.flag("EnableReadPrefetch"):
        ahead = 1 if icl.count("ReadPrefetchMode", 0, 1) == 0 else dies
        of.near(icl.shown(*names), "pages ahead of a sequence", ("controller.read_ahead", min(ahead, 256)))
        icl.skip("the second request of a sequence starts reading ahead", "ReadPrefetchCount", "ReadPrefetchRatio")
    else:
        of.about("same", icl.shown("EnableReadPrefetch"), "controller.read_ahead = 0")
        icl.skip("reading ahead is off", "ReadPrefetchMode", "ReadPrefetchCount", "ReadPrefetchRatio")
    icl.skip("the write buffer has no ways and evicts nothing", "CacheWaySize", "EvictPolicy", "EvictMode")
    icl.skip("the time of the cache's tables is not simulated", "CacheLatency")
