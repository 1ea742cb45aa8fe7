"""FEMU's black-box drive: the properties of `-device femu` in a command line, or in a script with one.

Properties and defaults are those of FEMU's commit 68032f3. A drive in this mode has lines: superblocks of one block of
each plane, which are written and collected as one. Ignored: the virtual machine, whose programs are the workload.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import InputError
from ..files import LARGEST_TEXT
from .elements import Elements, printable
from .record import Imported, size, time

_DEFAULTS = {
    "devsz_mb": "1024", "femu_mode": "2", "secsz": "512", "secs_per_pg": "8", "pgs_per_blk": "256",
    "blks_per_pl": "256", "pls_per_lun": "1", "luns_per_ch": "8", "nchs": "8", "pg_rd_lat": "40000",
    "pg_wr_lat": "200000",
    "blk_er_lat": "2000000", "ch_xfer_lat": "0", "gc_thres_pcent": "75", "gc_thres_pcent_high": "95",
}  # fmt: skip
_MODES = {0: "an open-channel drive", 2: "a drive without flash", 3: "a zoned drive"}
_PROTOCOL = (
    "serial", "namespaces", "queues", "entries", "multipoller_enabled", "max_cqes", "max_sqes", "stride", "aerl", "acl",
    "elpe", "mdts", "cqr", "vwc", "intc", "intc_thresh", "intc_time", "ms", "ms_max", "dlfeat", "mpsmin", "mpsmax",
    "nlbaf", "lba_index", "extended", "dpc", "dps", "mc", "meta", "cmbsz", "cmbloc", "oacs", "oncs", "vid", "did", "id",
    "bus", "addr",
)  # fmt: skip
_OTHER_MODES = (
    "flash_type", "lver", "lsec_size", "lsecs_per_pg", "lpgs_per_blk", "lmax_sec_per_rq", "lnum_ch", "lnum_lun",
    "lnum_pln", "lmetasize", "zns_num_ch", "zns_num_lun", "zns_read", "zns_write",
)  # fmt: skip
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


def convert(given: str) -> Imported:
    """Maps a command line, or the file with one. Raises InputError without one, or for wrong values."""
    place, text = _text(given)
    of = Imported("FEMU", options={"precondition": "none"})
    found = Elements(place, _properties(text, place, of), of, _DEFAULTS)
    mode = found.count("femu_mode", 0, 5)
    if mode != 1:
        what = f"found {mode}{f', {_MODES[mode]}' if mode in _MODES else ''}"
        raise found.error("femu_mode", what, "1, the black-box drive, which has an FTL")
    of.about("same", found.shown("femu_mode"), "")
    _flash(found, of)
    _layer(found, of)
    found.skip("the interface to the virtual machine, without a time", *_PROTOCOL)
    found.skip("FEMU reads it in other modes only", *_OTHER_MODES)
    found.rest("this is not a property of FEMU's black-box drive", (*_DEFAULTS, *_PROTOCOL))
    return of


def _text(given: str) -> tuple[str, str]:
    """The name of the command line in errors, and its text."""
    path = Path(given)
    is_name = len(given) < 4096 and "\n" not in given and "\0" not in given
    if is_name and (path.is_file() or not re.search(r"femu\s*,|\s", given)):
        try:
            with path.open("rb") as file:
                text = file.read(LARGEST_TEXT)
        except OSError as error:
            raise InputError(
                f"{printable(given)}: {error.strerror}; expected a command line with -device femu, or a file"
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


def _properties(text: str, place: str, of: Imported) -> Mapping[str, str]:
    words = list(_words(text))
    given = (
        word for at, word in enumerate(words) if word.split(",")[0] == "femu" and (not at or _is_option(words[at - 1]))
    )
    # A script may print the options that it passes on.
    devices = list(dict.fromkeys(given))
    if not devices:
        what = "there is no `-device femu,...`"
        raise InputError(f"{place}: {what}; expected one, as in -device femu,femu_mode=1,devsz_mb=4096")
    if len(devices) > 1:
        raise InputError(f"{place}: there are {len(devices)} drives of FEMU; expected one")
    found: dict[str, str] = {}
    for part in devices[0].split(",")[1:]:
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise InputError(f"{place}: -device femu: {printable(part)!r}; expected NAME=VALUE between commas")
        name = printable(name)
        if name in found:
            of.lost(f"{name} = {printable(found[name])}", "the property is repeated, and the last one counts")
        found[name] = value
    return found


def _is_option(word: str) -> bool:
    return word.lstrip("-") == "device"


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
    for name, key in (("pg_rd_lat", "part.t_read"), ("pg_wr_lat", "part.t_program"), ("blk_er_lat", "part.t_erase")):
        of.same(found.shown(name), (key, time(found.count(name, 0, 2**31 - 1))))
    found.count("ch_xfer_lat", 0, 2**31 - 1)
    of.near(
        found.shown("ch_xfer_lat"), "FEMU's channels take no time, whatever it says", ("part.bus_rate", "unlimited")
    )
    of.keys["part.t_command"] = ("0ns", "FEMU's channels take no time")
    of.keys["part.cell"] = ("slc", "all pages take the same times")
    of.keys["part.order"] = ("strict", "pages of a block in order")
    of.keys["part.nop"] = (1, "a page is programmed once")
    blocks = found.count("nchs") * found.count("luns_per_ch") * found.count("pls_per_lun") * found.count("blks_per_pl")
    flash = blocks * found.count("pgs_per_blk") * page
    seen = found.count("devsz_mb", 1, 2**32 - 1) << 20
    if seen >= flash:
        what = f"{seen >> 20} MiB of {flash >> 20} MiB of flash leave no spare space"
        raise found.error("devsz_mb", what, f"less than {flash >> 20}")
    of.same(found.shown("devsz_mb"), ("ssd.over_provisioning", f"{100 * (flash / seen - 1):.9f}%"))


def _layer(found: Elements, of: Imported) -> None:
    blocks = found.count("blks_per_pl")
    soft, hard = (found.count(name, 0, 100) for name in ("gc_thres_pcent", "gc_thres_pcent_high"))
    stop, start = (max(int((100 - each) * blocks / 100), 1) for each in (soft, hard))
    if stop < start:
        raise found.error("gc_thres_pcent_high", f"found {hard}", f"at least gc_thres_pcent, {soft}")
    why = "FEMU collects a line when so few are free, before the next request"
    of.near(found.shown("gc_thres_pcent_high"), why, ("ftl.gc_start", f"{start} blocks"))
    why = "FEMU collects a line after each request while so few are free; here while the host is idle"
    background = stop > start
    of.near(found.shown("gc_thres_pcent"), why, ("ftl.gc_background", background), ("ftl.gc_stop", f"{stop} blocks"))
    of.keys["ftl.name"] = ("page", "a page map in DRAM")
    of.keys["ftl.victim"] = ("greedy", "the line with the fewest valid pages")
    of.keys["ftl.allocation"] = ("round-robin", "pages of a line go to the channels in turn")
    of.keys["ftl.superblocks"] = ("collected", "a line is collected and erased as one")
    of.keys["ftl.superblock_planes"] = ("all", "a line has a block of each plane")
    of.keys["ftl.gc_pace"] = ("block", "a line is moved at once")
    of.keys["ftl.wear_leveling"] = ("none", "FEMU has none")
    of.keys["buffer.ack"] = ("program", "FEMU acknowledges a write when it is programmed")
    of.keys["sim.scheduler"] = ("fifo", "operations of a LUN in order")
    of.keys["sim.suspend"] = ("none", "no operation is suspended")
    of.keys["sim.multi_plane"] = ("off", "a LUN does one operation at a time")
    of.keys["host.link_rate"] = ("unlimited", "memory of the host")
