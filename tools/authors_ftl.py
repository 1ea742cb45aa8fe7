#!/usr/bin/env python3
"""Builds the FTL that the LLH paper's authors published, and compares its erases with those of its own baseline.

Usage: authors_ftl.py CLONE [--workload NAME...|all] [--threshold OP/2|OP/4...] [--seed N...] [--replays 1]
[--requests N] [--banks 1|16] [--cc COMMAND]; CLONE is a clone of github.com/zdvresearch/fast2016-ftl (not ours, GPL).

The protocol is that of the figure `published` of `reproduce llh`, whose constants are in paper.toml: one bank of the
drive with its share of the requests of our presets of Table 6, pages of 32 KiB, 28 % of over-provisioning; 64 KiB
requests fill the drive in order, the workload is replayed, and the replay after that counts. `--banks 16` runs the
whole drive, over which Zipf's law then extends. Both FTLs get the same requests, hot or cold by Sec. 5.3. The baseline
has two streams and the same collection: its hot stream programs all pages of a block in order, as the FTL's cold stream
does. Both open a block before they collect, because the FTL does (the column `order`).

A driver of ours (`DRIVER`) replaces the board and the authors' emulator (fast2016-openssd-emulator), because the
emulator stores all pages in a file of the drive's size, computes positions of 32 bits, and does not compile on Linux.
The driver maps memory and registers at the board's addresses, and stores the list of logical pages of each block alone.
Three parameters change in a copy of the clone: banks, sectors of the drive, and a memory of 128 MiB for 64 GB.

Ignored: data, times, reads, failures of encoding, bad blocks, pages of 8 KiB, over-provisioning of 7 %.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import palimpsest
from palimpsest.traces import TraceOptions, convert

PAPER = Path(__file__).parent.parent / "python" / "palimpsest" / "reproduce" / "papers" / "llh" / "paper.toml"
SOURCES = ("cleanList", "ftl", "ftl_metadata", "garbage_collection", "heap", "log", "read", "write")
FOLDERS = ("include", "ftl_page_mapped", "target_spw", "sata")
FLAGS = ["-std=gnu99", "-O2", "-w", "-fno-strict-aliasing", "-fcommon", *(f"-I{name}" for name in FOLDERS)]
PARAMETERS = Path("include", "jasmine.h")
BANKS = {1: "0x0001", 16: "0x0F0F0F0F"}  # the FTL's names of them
BOARD_BLOCKS = 2048  # of a bank, which the FTL's parameters divide
CHUNK_SECTORS, BLOCK_CHUNKS, FILL_SECTORS = 8, 1024, 128
COLUMNS = ("workload", "threshold", "banks", "seed", "replays", "order", "baseline", "LLH", "ratio", "constant")
FORM = "{:<12}{:>10}{:>6}{:>6}{:>9}{:>15}{:>10}{:>10}{:>8}{:>10}"
ORDER = "open, collect"
SHARES = {"OP/2": 2, "OP/4": 4}
Sectors = npt.NDArray[np.int64]
ZIPF = ("zipf-0.9", "zipf-0.95", "zipf-1")

DRIVER = r"""
/* Feeds requests to the FTL: words of sector << 24 | sectors << 1 | hot. Prints erases after the first `skipped`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "jasmine.h"

enum { LIST_BYTES = 4096, LIST_OF_LOW_PAGES = 125, BOARD_BYTES = 0x44000000 };
const UINT8 c_bank_map[NUM_BANKS] = BANK_MAP;
UINT8 g_temp_mem[BYTES_PER_SECTOR];
static UINT8 lists[NUM_BANKS][VBLKS_PER_BANK][LIST_BYTES];
static uint64_t erases;
void increaseLpnColdBlk(UINT32 const bank, LogCtrlBlock *stream);

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }
static void stop(const char *why) { fprintf(stderr, "%s\n", why); exit(3); }

/* The FTL reports an error and then never returns. */
void uart_print_level_1(char *text) { if (strcasestr(text, "error")) stop(text); }
void uart_print_level_1_int(UINT32 number) {}
void uart_print_level_2(char *text) {}
void uart_print_level_2_int(UINT32 number) {}
void led(BOOL32 on) {}
void enable_irq(void) {}
UINT32 disable_irq(void) { return 0; }
void flash_clear_irq(void) {}
void flash_finish(void) {}
void waitBusyBank(UINT32 const bank) {}
UINT8 isBankBusy(UINT32 const bank) { return FALSE; }

void _mem_copy(void *const to, const void *const from, UINT32 const bytes) { memmove(to, from, bytes); }
void _mem_set_sram(UINT32 to, UINT32 const value, UINT32 bytes) {}
void _mem_set_dram(UINT32 to, UINT32 const value, UINT32 bytes) { memset(at(to), value, bytes); }
UINT32 _mem_search_equ(const void *const from, UINT32 const unit, UINT32 const count, UINT32 const command,
                       UINT32 const value) { return count; }
UINT32 _mem_search_equ_4_bytes(const void *const from, UINT32 const count, UINT32 const command, UINT32 const value)
{
    UINT32 found = 0;
    while (found < count && ((const UINT32 *)from)[found] != value) found++;
    return found;
}
UINT16 _read_dram_16(UINT32 const from) { return *(UINT16 *)at(from); }
UINT32 _read_dram_32(UINT32 const from) { return *(UINT32 *)at(from); }
void _write_dram_16(UINT32 const to, UINT16 const value) { *(UINT16 *)at(to) = value; }
void _write_dram_32(UINT32 const to, UINT32 const value) { *(UINT32 *)at(to) = value; }
void _set_bit_dram(UINT32 const to, UINT32 const bit) {}
BOOL32 _tst_bit_dram(UINT32 const from, UINT32 const bit) { return FALSE; }

void nand_page_program(UINT32 const bank, UINT32 const block, UINT32 const page, UINT32 const from,
                       UINT32 const flag) {}
void nand_page_ptprogram_from_host(UINT32 const bank, UINT32 const block, UINT32 const page, UINT32 const first,
                                   UINT32 const sectors) {}
/* Parts of pages are lists. The second list of a block replaces the first, which the FTL has read by then. */
void nand_page_ptprogram(UINT32 const bank, UINT32 const block, UINT32 const page, UINT32 const first,
                         UINT32 const sectors, UINT32 const from, UINT32 const flag)
{
    memcpy(lists[bank][block], at(from), LIST_BYTES);
}
void nand_page_ptread(UINT32 const bank, UINT32 const block, UINT32 const page, UINT32 const first,
                      UINT32 const sectors, UINT32 const to, UINT32 const flag)
{
    int of_list = first == 0 && sectors * BYTES_PER_SECTOR == LIST_BYTES;
    if (of_list && (page == LIST_OF_LOW_PAGES || page == PAGES_PER_BLK - 1))
        memcpy(at(to), lists[bank][block], LIST_BYTES);
}
void nand_block_erase(UINT32 const bank, UINT32 const block) { erases++; }
void nand_block_erase_sync(UINT32 const bank, UINT32 const block) {}

int main(int count, char **given)
{
    if (count != 5) stop("expected: THRESHOLD of LLH or -1 of the baseline, SKIPPED, LIMIT in sectors, FILE");
    int threshold = atoi(given[1]);
    uint64_t skipped = strtoull(given[2], 0, 10), limit = strtoull(given[3], 0, 10), request, requests = 0, before = 0;
    FILE *file = fopen(given[4], "rb");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    if (!file || mmap(at(DRAM_BASE), BOARD_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != at(DRAM_BASE))
        stop("the driver cannot open its requests or map the board's addresses");
    for (int bank = 0; bank < NUM_BANKS; bank++) hotFirstAccumulated[bank] = threshold;
    ftl_open();
    if (threshold < 0) for (int bank = 0; bank < NUM_BANKS; bank++) hotLogCtrl[bank].increaseLpn = increaseLpnColdBlk;
    for (; fread(&request, sizeof request, 1, file) == 1; requests++) {
        uint64_t sector = request >> 24, end = sector + (request >> 1 & 0x7fffff);
        if (requests == skipped) before = erases;
        if (end > limit) stop("a request is beyond the drive's end");
        while (sector < end) {
            uint64_t part = MIN(end - sector, SECTORS_PER_PAGE - sector % SECTORS_PER_PAGE);
            *(volatile UINT32 *)at(BM_WRITE_LIMIT) = g_ftl_write_buf_id; /* the host is never late */
            (request & 1 ? ftl_write_hot : ftl_write_cold)(sector, part);
            sector += part;
        }
    }
    printf("%llu\n", (unsigned long long)(erases - before));
    return 0;
}
"""


@dataclass(frozen=True)
class Drive:
    """A drive of the paper, of `size` GB by 16 banks, or one bank of it."""

    size: int
    banks: int

    @property
    def blocks(self) -> int:
        """Blocks of a bank."""
        return 16 * self.size

    @property
    def spare(self) -> int:
        """Blocks of a bank that 28 % of over-provisioning adds to the host's."""
        return self.blocks * 28 // 128

    @property
    def chunks(self) -> int:
        """Chunks of 4 KiB that the host sees."""
        return self.blocks * self.banks * BLOCK_CHUNKS * 100 // 128


def compiler(given: str | None) -> str:
    """The C compiler: `given`, or the first that is installed. Exits with a message if there is none."""
    tried = [given] if given else [os.environ.get("CC", "cc"), "gcc", "clang"]
    for name in tried:
        if shutil.which(name):
            return name
    sys.exit(f"authors_ftl: found no C compiler ({', '.join(tried)}); --cc names another")


def build(clone: Path, drive: Drive, cc: str, folder: Path) -> Path:
    """The FTL with the driver, built in `folder`. Exits with a message on any failure."""
    needed = [PARAMETERS, *(Path("ftl_page_mapped", f"{name}.c") for name in SOURCES), *map(Path, FOLDERS)]
    missing = [path for path in needed if not (clone / path).exists()]
    if missing:
        sys.exit(f"authors_ftl: {clone} is no clone of fast2016-ftl: it has no {missing[0]}")
    for name in FOLDERS:
        shutil.copytree(clone / name, folder / name, dirs_exist_ok=True)
    text = (folder / PARAMETERS).read_text(encoding="utf-8", errors="replace")
    sectors = f"(NUM_PSECTORS / {BOARD_BLOCKS // drive.blocks})"
    values = {"NUM_LSECTORS": sectors, "DRAM_SIZE": "(128 * 1024 * 1024)", "BANK_BMP": BANKS[drive.banks]}
    for name, value in values.items():
        text, changed = re.subn(rf"(?m)^#define\s+{name}\s.*$", f"#define {name} {value}", text)
        if changed != 1:
            sys.exit(f"authors_ftl: {clone / PARAMETERS} must define {name} once, and defines {name} {changed} times")
    (folder / PARAMETERS).write_text(text, encoding="utf-8")
    (folder / "driver.c").write_text(f"#define _GNU_SOURCE{DRIVER}", encoding="utf-8")
    files = ["driver.c", *(f"ftl_page_mapped/{name}.c" for name in SOURCES)]
    command = [cc, *FLAGS, *files, "-o", "driver"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [f"status {done.returncode}"]
        sys.exit(f"authors_ftl: {cc} cannot build the FTL: {lines[0]}")
    return folder / "driver"


def hot(name: str, group: str, first: Sectors, sectors: Sectors, chunks: int) -> npt.NDArray[np.bool_]:
    """Whether each write is hot, as Sec. 5.3 of the paper classifies each group of workloads."""
    if group == "msr":
        return sectors < FILL_SECTORS  # 64 KiB
    if group == "zipf":
        weights = np.cumsum(np.arange(1, chunks + 1) ** -float(name.removeprefix("zipf-")))
        return first < CHUNK_SECTORS * (int(np.searchsorted(weights, weights[-1] / 2)) + 1)
    pages, ends = first // CHUNK_SECTORS, -(-(first + sectors) // CHUNK_SECTORS)
    starts = np.concatenate(([True], pages[1:] != ends[:-1]))
    length = np.cumsum(ends - pages)
    before = np.where(starts, length - (ends - pages), 0)
    return length - np.maximum.accumulate(before) <= 2


def requests(
    name: str, group: str, drive: Drive, seed: int, replays: int, count: int, folder: Path
) -> tuple[Path, int]:
    """The file of all writes for the driver, of `count` requests a replay, and how many of them do not count."""
    trace, described = folder / "trace.parquet", folder / "drive.toml"
    banks = "" if drive.banks == 16 else "[ssd]\nchannels = 1\nchips_per_channel = 1\n"
    described.write_text(f'base = "llh32-{drive.size}g"\n{banks}', encoding="utf-8")
    spec = f"{name},n={count * (1 + replays)}"
    try:
        convert(TraceOptions(spec, ssd=str(described), seed=seed, output=str(trace)))
    except palimpsest.Error as error:
        sys.exit(f"authors_ftl: {error}")
    frame = pl.read_parquet(trace, columns=["op", "offset_bytes", "size_bytes"])
    writes = frame["op"] == "write"
    end = drive.chunks * CHUNK_SECTORS
    fill = np.arange(0, end, FILL_SECTORS, dtype=np.int64)
    skipped = len(fill) + int(writes[: count * replays].sum())
    frame = frame.filter(writes)
    first = np.concatenate((fill, frame["offset_bytes"].to_numpy().astype(np.int64) // 512))
    sizes = frame["size_bytes"].to_numpy().astype(np.int64) // 512
    sectors = np.concatenate((np.minimum(FILL_SECTORS, end - fill), sizes))
    words = first << 24 | sectors << 1 | hot(name, group, first, sectors, drive.chunks)
    words.tofile(folder / "requests")
    return folder / "requests", skipped


def erases(driver: Path, threshold: int, skipped: int, drive: Drive, file: Path) -> int:
    """Erases that the driver counts; `threshold` is -1 for the baseline. Exits with the FTL's message if it stops."""
    command = [str(driver), str(threshold), str(skipped), str(drive.chunks * CHUNK_SECTORS), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return int(done.stdout)
    except ValueError:
        why = " ".join(done.stderr.split()) or f"status {done.returncode}"
        sys.exit(f"authors_ftl: the FTL stopped before the last request: {why}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each workload, seed and threshold."""
    paper = tomllib.loads(PAPER.read_text(encoding="utf-8"))
    rows, constants = paper["values"]["workload"], paper["constants"]["authors"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--workload", nargs="+", default=ZIPF, choices=["all", *rows], metavar="NAME")
    parser.add_argument("--threshold", nargs="+", default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--seed", nargs="+", type=int, default=[1])
    parser.add_argument("--replays", type=int, default=1, help="replays between the fill and the counted one")
    parser.add_argument("--requests", type=float, help="of a replay, instead of Table 6")
    parser.add_argument("--banks", type=int, default=1, choices=list(BANKS), help="of the paper's 16")
    parser.add_argument("--cc", help="C compiler")
    given = parser.parse_args(arguments)
    cc = compiler(given.cc)
    print(FORM.format(*COLUMNS))
    for name in rows if "all" in given.workload else given.workload:
        row = rows[name]
        drive = Drive(row["drive"], given.banks)
        count = int(given.requests or row["requests"] * 1e6 * given.banks // 16)
        with tempfile.TemporaryDirectory() as folder:
            driver = build(given.clone, drive, cc, Path(folder))
            for seed in given.seed:
                file, skipped = requests(name, row["group"], drive, seed, given.replays, count, Path(folder))
                base = erases(driver, -1, skipped, drive, file)
                for threshold in given.threshold:
                    own = erases(driver, drive.spare // SHARES[threshold], skipped, drive, file)
                    said = (f"{own / base:.3f}" if base else "-", constants[threshold].get(name, "-"))
                    shown = (name, threshold, given.banks, seed, given.replays, ORDER, base, own, *said)
                    print(FORM.format(*shown), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
