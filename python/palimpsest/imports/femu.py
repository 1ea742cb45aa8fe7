"""FEMU's black-box drive: the properties of `-device femu` in a command line, or in a script with one.

Properties and defaults are those of FEMU's commit 99ce4fb. A drive in this mode has lines: superblocks of one block of
each plane, which are written and collected as one; with a subsystem (`-device femu-subsys`) that has FDP they are
reclaim units. Ignored: the virtual machine, whose programs are the workload.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import InputError, did_you_mean
from ..files import LARGEST_TEXT, is_file
from .elements import Elements, printable
from .record import Imported, size, time

_DEFAULTS = {
    "devsz_mb": "1024", "femu_mode": "2", "secsz": "512", "secs_per_pg": "8", "pgs_per_blk": "256",
    "blks_per_pl": "256", "pls_per_lun": "1", "luns_per_ch": "8", "nchs": "8", "pg_rd_lat": "40000",
    "pg_wr_lat": "200000",
    "blk_er_lat": "2000000", "ch_xfer_lat": "0", "gc_thres_pcent": "75", "gc_thres_pcent_high": "95",
}  # fmt: skip
_SUBSYSTEM = {
    "id": "", "fdp": "off", "fdp.runs": "96M", "fdp.nrg": "1", "fdp.nruh": "0", "fdp.nru": "128",
    "fdp.isolation_mode": "0",
}  # fmt: skip
_MODES = {
    0: "an open-channel drive", 2: "a drive without flash", 3: "a zoned drive", 4: "a computational drive",
    5: "a key-value drive", 6: "a drive that computes",
}  # fmt: skip
_SKIPPED = {
    "the interface to the virtual machine, without a time": (
        "serial", "namespaces", "namespace_sizes", "namespace_modes", "queues", "entries", "multipoller_enabled",
        "max_cqes", "max_sqes", "stride", "aerl", "acl", "elpe", "mdts", "cqr", "vwc", "intc", "intc_thresh",
        "intc_time", "ms", "ms_max", "dlfeat", "mpsmin", "mpsmax", "nlbaf", "lba_index", "extended", "dpc", "dps",
        "mc", "meta", "cmbsz", "cmbloc", "oacs", "oncs", "sgl", "vid", "did", "id", "bus", "addr", "debug_ftl",
    ),
    "FEMU reads it in other modes only": (
        "flash_type", "lver", "lsec_size", "lsecs_per_pg", "lpgs_per_blk", "lmax_sec_per_rq", "lnum_ch", "lnum_lun",
        "lnum_pln", "lmetasize", "fdm_size", "nr_cu", "nr_thread", "time_slice", "context_switch_time",
        "csf_runtime_scale", "zns_num_ch", "zns_num_lun", "zns_num_plane", "zns_num_blk", "zns_flash_type",
        "zns_max_active", "zns_max_open", "zns_zd_ext_size", "zns_num_conv_zones", "zns_zone_cap",
        "zns_chnls_per_zone", "zns_zrwa_size", "zns_zrwafg_size", "zns_zrwa_num", "zns_cross_zone_read",
        "zns_zasl_bs", "zns_read", "zns_write",
    ),
    "no operation of a black-box drive has this time in FEMU": (
        "ecc_step_ns", "cmd_addr_lat", "pg_xfer_lat", "status_lat", "tplpbsy", "tplrbsy", "tplebsy", "trcbsy",
    ),
    "no data is cached for reads, but what is read ahead": ("read_cache_mb", "cache_evict"),
    "a trim takes no time of the flash": ("trim_lat_ns", "fdp_trim_erase_all"),
    "FEMU reports so many, and uses them as any other": ("nand_bad_blocks",),
    "FEMU returns such errors to the host; here faults.* and ecc.* have causes of errors": (
        "err_read_unc_ppm", "err_write_fail_ppm",
    ),
}  # fmt: skip
_POLICIES = {
    "greedy": "greedy", "random": "d-choices:1", "cost-benefit": "cost-benefit", "fifo": "fifo",
    "d-choice": "d-choices:4",
}  # fmt: skip
_STRATEGIES = {0: "greedy", 1: "cost-benefit", 2: "d-choices:1"}
_CELLS = {
    1: ("slc", (40_000,), (800_000,), 2_000_000),
    2: ("mlc", (48_000, 64_000), (850_000, 2_300_000), 3_000_000),
    3: ("tlc", (56_500, 77_500, 106_000), (820_500, 2_225_000, 5_734_000), 3_000_000),
    4: ("qlc", (59_325, 85_250, 127_200, 169_600), (861_525, 2_447_500, 6_880_800, 9_174_400), 3_000_000),
}
"""Cells of `nand_cell_type`: reads and programs of the pages of a word line, and erases, in ns (FEMU's `nand.h`)."""
_LOGS = {"hybrid": "bast", "fast": "fast"}
_LOG_BLOCKS = 16
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


def convert(given: str) -> tuple[Imported, str]:
    """Maps a command line, or the file with one; returns the drive and where it is from.

    Raises InputError without a command line, or for wrong values.
    """
    place, text = _text(given)
    # FEMU starts with an empty drive, whose figures say little about a drive in use.
    of = Imported("FEMU", options={"precondition": "fill:90%,random:1x"})
    words = list(_words(text))
    devices = _devices(words, "femu")
    if len(devices) != 1:
        what = f"there are {len(devices)} drives of FEMU" if devices else "there is no `-device femu,...`"
        raise InputError(f"{place}: {what}; expected one, as in -device femu,femu_mode=1,devsz_mb=4096")
    found = Elements(place, _properties(devices[0], place, of), of, _DEFAULTS)
    mode = found.count("femu_mode", 0, 6)
    if mode != 1:
        what = f"found {mode}, {_MODES[mode]}"
        raise found.error("femu_mode", what, "1, the black-box drive, which has an FTL")
    of.about("same", found.shown("femu_mode"), "")
    _flash(found, of)
    _times(found, of)
    placed = _placement(found, of, words, place)
    _map(found, of, placed=placed)
    _controller(found, of)
    for why, names in _SKIPPED.items():
        found.skip(why, *names)
    known = (*_DEFAULTS, *(name for names in _SKIPPED.values() for name in names))
    found.rest("this is not a property of FEMU's black-box drive", known)
    return of, place


def _text(given: str) -> tuple[str, str]:
    """The name of the command line in errors, and its text."""
    if is_file(given) or not re.search(r"femu\s*,|\s", given):
        try:
            with Path(given).open("rb") as file:
                text = file.read(LARGEST_TEXT)
        except (OSError, ValueError) as error:
            what = getattr(error, "strerror", None) or error
            raise InputError(
                f"{printable(given)}: {what}; expected a command line with -device femu, or a file"
            ) from error
        return given, text.decode("utf-8", "replace")
    return "the command line", given


def _words(text: str) -> Iterator[str]:
    """The words of a shell's lines with the variables that earlier lines set."""
    variables: dict[str, str] = {}

    def expanded(word: str) -> str:
        return _USED.sub(lambda used: variables.get(used[1], ""), word)[: LARGEST_TEXT >> 8]

    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        for at, word in enumerate(words):
            assigned = _ASSIGNED.fullmatch(word)
            if assigned and at == 0:
                variables[assigned[1]] = expanded(assigned[2])
            else:
                yield from expanded(word).split() if _USED.search(word) else (word,)


def _devices(words: list[str], name: str) -> list[str]:
    """The devices of this name, each once: a script may print the options that it passes on."""
    given = (
        word
        for at, word in enumerate(words)
        if word.split(",")[0] == name and (not at or words[at - 1].lstrip("-") == "device")
    )
    return list(dict.fromkeys(given))


def _properties(device: str, place: str, of: Imported) -> Mapping[str, str]:
    kind, *parts = device.split(",")
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise InputError(f"{place}: -device {kind}: {printable(part)!r}; expected NAME=VALUE between commas")
        name = printable(name)
        if name in found:
            of.lost(f"{name} = {printable(found[name])}", "the property is repeated, and the last one counts")
        found[name] = value
    return found


def _flash(found: Elements, of: Imported) -> None:
    for name, key in (
        ("nchs", "ssd.channels"), ("luns_per_ch", "ssd.chips_per_channel"), ("pls_per_lun", "ssd.planes_per_die"),
        ("blks_per_pl", "ssd.blocks_per_plane"), ("pgs_per_blk", "part.pages_per_block"),
    ):  # fmt: skip
        of.same(found.shown(name), (key, found.count(name, 1, 65535)))
    of.keys["ssd.dies_per_chip"] = (1, "a LUN is a die")
    page = found.count("secsz", 512, 65536) * found.count("secs_per_pg", 1, 1024)
    if page % 512:
        raise found.error("secsz", f"a page has {page} bytes", "a multiple of 512 bytes")
    unit = 4096 if page % 4096 == 0 else page
    keys = (("part.page_size", size(page)), ("part.subpage_size", size(unit)), ("part.word_size", size(unit)))
    of.same(found.shown("secsz", "secs_per_pg"), *keys)
    of.keys["part.order"] = ("strict", "pages of a block in order")
    of.keys["part.nop"] = (1, "a page is programmed once")
    blocks = found.count("nchs") * found.count("luns_per_ch") * found.count("pls_per_lun") * found.count("blks_per_pl")
    flash = blocks * found.count("pgs_per_blk") * page
    if spare := found.optional("op_pcent", 10_000):
        of.same(found.shown("op_pcent"), ("ssd.over_provisioning", f"{spare}%"))
        found.skip("op_pcent decides", "devsz_mb")
        return
    seen = found.count("devsz_mb", 1, 2**32 - 1) << 20
    if seen >= flash:
        what = f"{seen >> 20} MiB of {flash >> 20} MiB of flash leave no spare space"
        raise found.error("devsz_mb", what, f"less than {flash >> 20}")
    of.same(found.shown("devsz_mb"), ("ssd.over_provisioning", f"{100 * (flash / seen - 1):.9f}%"))
    _off(found, of, "op_pcent")


def _times(found: Elements, of: Imported) -> None:
    found.count("ch_xfer_lat", 0, 2**31 - 1)
    of.near(
        found.shown("ch_xfer_lat"), "FEMU's channels take no time, whatever it says", ("part.bus_rate", "unlimited")
    )
    of.keys["part.t_command"] = ("0ns", "FEMU's channels take no time")
    flat = (("pg_rd_lat", "part.t_read"), ("pg_wr_lat", "part.t_program"), ("blk_er_lat", "part.t_erase"))
    kind = found.optional("nand_cell_type", 255)
    if kind not in _CELLS:
        of.keys["part.cell"] = ("slc", "all pages take the same times")
        for name, key in flat:
            of.same(found.shown(name), (key, time(found.count(name, 0, 2**31 - 1))))
        if kind:
            of.lost(found.shown("nand_cell_type"), "FEMU takes the flat times for cells that it does not know")
        _off(found, of, "nand_cell_type")
        found.skip("all pages take pg_wr_lat, the mean of the types", "pgtype_lat", "cell_pages")
        return
    cell, reads, programs, erase = _CELLS[kind]
    keys: list[tuple[str, str | list[str]]] = [("part.cell", cell), ("part.t_erase", time(erase))]
    if len(reads) <= 2:
        keys += [("part.t_read", time(reads[0])), ("part.t_program", time(programs[0]))]
        keys += [("part.t_read_high", time(reads[-1])), ("part.t_program_high", time(programs[-1]))] * (cell == "mlc")
    else:
        mean = sum(reads) // len(reads), sum(programs) // len(programs)
        keys += [("part.t_read", time(mean[0])), ("part.t_read_types", [*map(time, reads)])]
        keys += [("part.t_program", time(mean[1]))]
    if cell == "slc":
        of.same(found.shown("nand_cell_type"), *keys)
    else:
        one = "" if cell == "mlc" else "; programs take one time, the mean"
        of.near(found.shown("nand_cell_type"), f"other pages share a word line{one}", *keys)
    found.skip("nand_cell_type decides", *(name for name, _ in flat), "pgtype_lat", "cell_pages")


def _placement(found: Elements, of: Imported, words: list[str], place: str) -> bool:
    """Maps the subsystem; returns whether the drive has FDP."""
    if not found.has("subsys"):
        return False
    name = found.text("subsys")
    all_of = [_properties(device, place, of) for device in _devices(words, "femu-subsys")]
    given = [each for each in all_of if each.get("id") == name]
    if not given:
        of.lost(found.shown("subsys"), f"there is no `-device femu-subsys,id={printable(name)}`")
        return False
    subsystem = Elements(f"{place}: -device femu-subsys", given[-1], of, _SUBSYSTEM)
    subsystem.skip("a name", "id", "nqn")
    has_fdp = subsystem.text("fdp").lower() in ("on", "true", "yes", "y")
    shown = f"{found.shown('subsys')}, {subsystem.shown('fdp')}"
    if not has_fdp:
        of.lost(shown, "the subsystem has no FDP")
        return False
    of.about("same", shown, "ftl.name = fdp")
    of.same(subsystem.shown("fdp.nruh"), ("fdp.handles", subsystem.count("fdp.nruh", 1, 65535)))
    groups = subsystem.count("fdp.nrg", 1, 65535)
    if groups == 1:
        of.same(subsystem.shown("fdp.nrg"), ("fdp.groups", groups))
    else:
        why = "a group is a part of the dies; FEMU divides the lines"
        of.near(subsystem.shown("fdp.nrg"), why, ("fdp.groups", groups))
    subsystem.text("fdp.runs")
    lines = found.count("blks_per_pl") * found.count("pls_per_lun")
    units = subsystem.count("fdp.nru", 0, 2**40)
    less = f"; FEMU uses {units} of {lines} lines, here all are used" if 0 < units < lines else ""
    shown = subsystem.shown("fdp.runs", "fdp.nru")
    of.near(shown, f"a unit is a line in FEMU, whatever they say{less}", ("fdp.unit", "superblock"))
    last = subsystem.count("fdp.isolation_mode", 0, 2**32 - 1)
    key = ("fdp.isolation", "persistent")
    if last:
        of.near(subsystem.shown("fdp.isolation_mode"), "the last handle is initially isolated in FEMU", key)
    else:
        of.same(subsystem.shown("fdp.isolation_mode"), key)
    subsystem.rest("this is not a property of FEMU's subsystem", _SUBSYSTEM)
    return True


def _map(found: Elements, of: Imported, *, placed: bool) -> None:
    theirs = found.text("mapping") if found.has("mapping") else "page"
    if theirs in _LOGS and not placed:
        _logs(found, of, theirs)
        return
    if theirs == "dftl":
        megabytes = found.optional("mapping_cache_mb", 2**20) or 4
        why = "single entries are cached; FEMU caches pages of entries, and charges the host's requests only"
        keys = ("ftl.name", "fdp-dftl" if placed else "dftl"), ("ftl.cmt", size(megabytes << 20))
        of.near(found.shown("mapping", *["mapping_cache_mb"] * found.has("mapping_cache_mb")), why, *keys)
    else:
        name = "fdp" if placed else "page"
        of.keys["ftl.name"] = (name, "a page map in DRAM")
        if theirs == "page" and found.has("mapping"):
            of.same(found.shown("mapping"), ("ftl.name", name))
        elif theirs != "page":
            why = "FEMU's FDP has a page map" if theirs in _LOGS else "FEMU takes a page map for names it does not know"
            of.lost(found.shown("mapping"), why + did_you_mean(theirs, ("page", "dftl", *_LOGS)))
    found.skip("only mapping = dftl reads it", "mapping_cache_mb")
    _collection(found, of, placed=placed)


def _logs(found: Elements, of: Imported, theirs: str) -> None:
    planes = found.count("nchs") * found.count("luns_per_ch") * found.count("pls_per_lun")
    logs = max(_LOG_BLOCKS // planes, 1)
    why = f"the drive has {_LOG_BLOCKS} log blocks in FEMU, {logs} in each of {planes} planes here"
    why += "; FEMU keeps its page map, and adds the time of merges" * (theirs == "hybrid")
    of.near(found.shown("mapping"), why, ("ftl.name", _LOGS[theirs]), ("ftl.log_blocks", logs))
    # Random overwrites merge a block each.
    of.options["precondition"] = "fill:90%"
    why = "log blocks are merged when none is left"
    found.skip(why, "gc_thres_pcent", "gc_thres_pcent_high", "gc_policy", "gc_strategy", "mapping_cache_mb")


def _victims(found: Elements, of: Imported, *, placed: bool) -> None:
    of.keys["ftl.victim"] = ("greedy", "the line with the fewest valid pages")
    name, other = ("gc_strategy", "gc_policy") if placed else ("gc_policy", "gc_strategy")
    if found.has(name):
        policy = _STRATEGIES.get(found.count(name, 0, 255)) if placed else _POLICIES.get(found.text(name))
        if policy:
            of.same(found.shown(name), ("ftl.victim", policy))
        else:
            meant = "" if placed else did_you_mean(found.text(name), _POLICIES)
            why = f"this choice is not here: greedy, which FEMU takes for names that it does not know{meant}"
            of.near(found.shown(name), why, ("ftl.victim", "greedy"))
    found.skip(f"FEMU reads it {'without' if placed else 'with'} FDP only", other)


def _collection(found: Elements, of: Imported, *, placed: bool) -> None:
    blocks = found.count("blks_per_pl")
    soft, hard = (found.count(name, 0, 100) for name in ("gc_thres_pcent", "gc_thres_pcent_high"))
    stop, start = (max(int((100 - each) * blocks / 100), 1) for each in (soft, hard))
    if stop < start:
        raise found.error("gc_thres_pcent_high", f"found {hard}", f"at least gc_thres_pcent, {soft}")
    why = "FEMU collects a line when so few are free, before the next request"
    keys = ("ftl.gc_start", f"{start} blocks"), ("ftl.gc_stop", f"{start} blocks")
    of.near(found.shown("gc_thres_pcent_high"), why, *keys)
    if stop > start:
        why = "FEMU collects a line after each request while so few are free; here while the host is idle"
        idle = ("ftl.gc_background", True), ("ftl.gc_idle_stop", f"{stop} blocks")
        of.near(found.shown("gc_thres_pcent"), why, *idle)
    else:
        of.near(found.shown("gc_thres_pcent"), "no more than gc_thres_pcent_high", ("ftl.gc_background", False))
    _victims(found, of, placed=placed)
    if not placed:
        of.keys["ftl.allocation"] = ("round-robin", "pages of a line go to the channels in turn")
        of.keys["ftl.superblocks"] = ("collected", "a line is collected and erased as one")
        of.keys["ftl.superblock_planes"] = ("all", "a line has a block of each plane")
    of.keys["ftl.gc_pace"] = ("block", "a line is moved at once")


def _controller(found: Elements, of: Imported) -> None:
    of.keys["ftl.wear_leveling"] = ("none", "FEMU has none")
    of.keys["buffer.ack"] = ("program", "FEMU acknowledges a write when it is programmed")
    of.keys["sim.scheduler"] = ("fifo", "operations of a LUN in order")
    of.keys["sim.suspend"] = ("none", "no operation is suspended")
    of.keys["sim.multi_plane"] = ("off", "a LUN does one operation at a time")
    of.keys["host.link_rate"] = ("unlimited", "memory of the host")
    if rate := found.optional("pcie_bandwidth_mbps", 10**6):
        of.same(found.shown("pcie_bandwidth_mbps"), ("host.link_rate", f"{rate}MB/s"))
    if delay := found.optional("pcie_prop_delay_ns", 2**32 - 1):
        why = "half of it each way; FEMU adds it once"
        of.near(found.shown("pcie_prop_delay_ns"), why, ("host.t_link", time(delay // 2)))
    if busy := found.optional("fw_cpu_ns", 10**9):
        why = "before the flash; FEMU adds it after the flash"
        of.near(found.shown("fw_cpu_ns"), why, ("controller.iops", 10**9 // busy))
    _off(found, of, "pcie_bandwidth_mbps", "pcie_prop_delay_ns", "fw_cpu_ns")


def _off(found: Elements, of: Imported, *names: str) -> None:
    """Takes over the properties among these that are 0, as if they were absent."""
    for name in names:
        if found.has(name) and not found.count(name):
            of.about("same", found.shown(name), "")
