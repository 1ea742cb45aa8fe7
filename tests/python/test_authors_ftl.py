"""`tools/authors_ftl.py` without the authors' code: messages for wrong clones and compilers, requests, and the table.

A compiler of the tests writes a program that prints the given line, instead of the FTL.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import authors_ftl
from authors_ftl import Drive
from palimpsest.traces import TraceOptions

COUNTED = 80


def clone(
    folder: Path, header: str = "#define NUM_LSECTORS (NUM_PSECTORS)\n#define DRAM_SIZE 1 // 64MB\n#define BANK_BMP 0\n"
) -> Path:
    """A folder with the names of the authors' files."""
    for name in ("include", "ftl_page_mapped", "target_spw", "sata"):
        (folder / name).mkdir(parents=True)
    for name in authors_ftl.SOURCES:
        (folder / "ftl_page_mapped" / f"{name}.c").touch()
    (folder / authors_ftl.PARAMETERS).write_text(header, encoding="utf-8")
    return folder


def program(path: Path, *lines: str) -> Path:
    """A shell script."""
    path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every workload is two writes and a read between them."""

    def convert(options: TraceOptions) -> None:
        columns = {
            "op": ["write", "read", "write"],
            "offset_bytes": [4096, 0, 1 << 30],
            "size_bytes": [4096, 4096, 8192],
        }
        pl.DataFrame(columns).write_parquet(options.output)

    monkeypatch.setattr(authors_ftl, "convert", convert)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"is no clone of fast2016-ftl: it has no include/jasmine\.h"):
        authors_ftl.build(tmp_path, Drive(16, 1), "cc", tmp_path)


def test_a_parameter_must_be_defined_once(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="must define NUM_LSECTORS once, and defines NUM_LSECTORS 0 times"):
        authors_ftl.build(clone(tmp_path / "clone", "//#define NUM_LSECTORS 1\n"), Drive(16, 1), "cc", tmp_path)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"found no C compiler \(none-such\); --cc names another"):
        authors_ftl.compiler("none-such")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(SystemExit, match=r"found no C compiler \(cc, gcc, clang\)"):
        authors_ftl.compiler(None)
    program(tmp_path / "clang")
    assert authors_ftl.compiler(None) == "clang"


def test_a_failed_build_names_the_first_error(tmp_path: Path) -> None:
    failing = program(
        tmp_path / "cc", "echo 'driver.c: in main' >&2", "echo 'driver.c:9: error: no type' >&2", "exit 1"
    )
    with pytest.raises(SystemExit, match=r"cannot build the FTL: driver\.c:9: error: no type$"):
        authors_ftl.build(clone(tmp_path / "clone"), Drive(16, 1), str(failing), tmp_path)


def test_parameters_change_in_the_copy_alone(tmp_path: Path) -> None:
    source = clone(tmp_path / "clone")
    before = (source / authors_ftl.PARAMETERS).read_text(encoding="utf-8")
    authors_ftl.build(source, Drive(64, 16), str(program(tmp_path / "cc")), tmp_path / "copy")
    assert (source / authors_ftl.PARAMETERS).read_text(encoding="utf-8") == before
    changed = (tmp_path / "copy" / authors_ftl.PARAMETERS).read_text(encoding="utf-8")
    assert "#define NUM_LSECTORS (NUM_PSECTORS / 2)" in changed
    assert "#define DRAM_SIZE (128 * 1024 * 1024)" in changed


@pytest.mark.parametrize("line", ["echo ERROR in readPage >&2; exit 3", "echo ERROR in readPage >&2; echo here"])
def test_a_stopped_ftl_gives_its_message(line: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="stopped before the last request: ERROR in readPage"):
        authors_ftl.erases(program(tmp_path / "driver", line), 28, 1, Drive(16, 1), tmp_path)


def test_erases_are_those_that_the_driver_prints(tmp_path: Path) -> None:
    assert authors_ftl.erases(program(tmp_path / "driver", f"echo {COUNTED}"), 28, 1, Drive(16, 1), tmp_path) == 80


def test_hot_writes_by_the_classifiers_of_the_paper() -> None:
    def hot(name: str, group: str, *extents: tuple[int, int]) -> list[bool]:
        first, sectors = np.array(extents, dtype=np.int64).T
        return list(authors_ftl.hot(name, group, first, sectors, 4))

    assert hot("hm_0", "msr", (0, 127), (0, 128)) == [True, False]
    in_order = hot("online", "fiu", (0, 8), (8, 8), (16, 8), (80, 8), (88, 8), (96, 8), (0, 24), (24, 8))
    assert in_order == [True, True, False, True, True, False, False, False]
    # Of 1 + 1/2 + 1/3 + 1/4, the first two are more than half.
    assert hot("zipf-1", "zipf", (0, 8), (8, 8), (16, 8)) == [True, True, False]


@pytest.mark.usefixtures("few_requests")
def test_requests_are_the_fill_and_the_writes(tmp_path: Path) -> None:
    drive = Drive(16, 16)
    file, skipped = authors_ftl.requests("zipf-1", "zipf", drive, 1, 1, 1, tmp_path)
    words = np.fromfile(file, dtype=np.int64)
    sectors = drive.chunks * 8
    assert sectors == 26_214_400, "16 GiB over 1.28"
    assert drive.spare == 56
    assert len(words) == sectors // 128 + 2
    assert skipped == sectors // 128 + 1, "the fill and one write of the replay"
    assert [int(words[1]) >> 24, int(words[1]) >> 1 & 0x7FFFFF] == [128, 128]
    assert list(words[-2:]) == [8 << 24 | 8 << 1 | 1, 2**21 << 24 | 16 << 1]


@pytest.mark.usefixtures("few_requests")
def test_a_row_has_the_ratio_and_the_constant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = f'[ "$1" = -1 ] && echo 100 || echo {COUNTED}'
    (tmp_path / "driver").write_text(f"#!/bin/sh\n{reports}\n", encoding="utf-8")
    cc = program(tmp_path / "cc", f"cp {tmp_path / 'driver'} driver", "chmod +x driver")
    given = [str(clone(tmp_path / "clone")), "--cc", str(cc), "--workload", "zipf-1", "hm_0", "--seed", "7"]
    assert authors_ftl.main(given) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["zipf-1", "OP/2", "1", "7", "1", "open,", "collect", "100", "80", "0.800", "0.85"]
    assert lines[2] == ["zipf-1", "OP/4", "1", "7", "1", "open,", "collect", "100", "80", "0.800", "0.86"]
    assert lines[3][-2:] == ["0.800", "-"]
