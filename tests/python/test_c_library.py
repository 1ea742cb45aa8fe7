"""`libpalimpsest`: a program in C with its own event loop has the result of `palimpsest run`."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from test_drives import _figures, _trace

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples/c/replay.c"
PRESETS = (
    "default", "mga-8k", "mga-16k", "spread-16g", "llh-16g", "codesign-8ch", "tlc-32g", "datacentre-tlc", "zn540",
    "970pro-512g",
)  # fmt: skip
LAYERS = {"zn540": "page"}
KEYS = {"ssd.blocks_per_plane": 48}


def _call(*command: str | Path, **keys: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **keys)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make c-library` fills, of an unoptimized build."""
    if not all(shutil.which(each) for each in ("cc", "make", "cargo")):
        pytest.skip("needs cc, make and cargo")
    prefix = tmp_path_factory.mktemp("c library")
    _call("make", "c-library", f"PREFIX={prefix}", "PROFILE=dev", cwd=ROOT)
    return prefix


Replay = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def replay(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """Runs the example, linked with the shared library."""
    program = tmp_path_factory.mktemp("program") / "replay"
    _call(
        "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", SOURCE, f"-I{library}/include", f"-L{library}/lib",
        "-lpalimpsest", f"-Wl,-rpath,{library}/lib", "-o", program,
    )  # fmt: skip

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run((program, *arguments), capture_output=True, text=True, check=False)

    return run


@pytest.mark.contract
@pytest.mark.parametrize("preset", PRESETS)
def test_a_c_program_has_the_result_of_a_run(replay: Replay, preset: str, tmp_path: Path) -> None:
    trace = _trace(tmp_path / "t.csv")
    layer = LAYERS.get(preset, "subpage")
    done = replay(trace, preset, layer, *(f"{key}={value}" for key, value in KEYS.items()))
    assert done.returncode == 0, done.stderr
    found = ps.Result(json.loads(done.stdout))
    expected = ps.run(trace, ssd=ps.Ssd(preset, ftl=layer, **KEYS), payload="tag", precondition="none")
    theirs = _figures(found)
    assert theirs["requests"]
    assert {key: value for key, value in _figures(expected).items() if key in theirs} == theirs


@pytest.mark.contract
def test_errors_of_the_c_library_are_one_line(replay: Replay, tmp_path: Path) -> None:
    trace = _trace(tmp_path / "t.csv")
    for arguments, expected in (
        (("nothing",), "nothing"),
        (("default", "nothing"), "nothing"),
        (("default", "subpage", "ftl.nothing=1"), "ftl.nothing"),
        (("default", "page", "ftl.merge_limits=1/1/1/1"), "ftl.merge_limits"),
    ):
        done = replay(trace, *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert expected in done.stderr
        assert done.stderr.count("\n") == 1
    beyond = tmp_path / "beyond.csv"
    beyond.write_text("5,read,1099511627776,4096\n", encoding="utf-8")
    assert "the request ends at byte" in replay(beyond, "default").stderr


@pytest.mark.contract
def test_every_function_refuses_null(library: Path, tmp_path: Path) -> None:
    """A program calls each function of the header with NULL and wrong numbers; none may end the program."""
    header = (library / "include/palimpsest.h").read_text(encoding="utf-8")
    assert header.count("palimpsest_") > 30
    source = tmp_path / "null.c"
    source.write_text(
        """
#include <palimpsest.h>
#include <string.h>
int main(void) {
    struct palimpsest_request request = {.kind = 9};
    struct palimpsest_completion completion;
    uint64_t time = 0;
    int wrong = palimpsest_builder(NULL) != NULL || palimpsest_builder("\\xff") != NULL;
    wrong += palimpsest_build(NULL) != NULL;
    wrong += palimpsest_layer(NULL, "page") != PALIMPSEST_INPUT || palimpsest_set(NULL, NULL, NULL) != PALIMPSEST_INPUT;
    wrong += palimpsest_size(NULL) || palimpsest_now(NULL) || palimpsest_in_flight(NULL) || palimpsest_unit_size(NULL);
    wrong += palimpsest_next_time(NULL, &time) || palimpsest_completed(NULL, &completion, 1);
    wrong += palimpsest_submit(NULL, &request, 0, NULL) != PALIMPSEST_INPUT;
    wrong += palimpsest_advance(NULL, 0) != PALIMPSEST_INPUT || palimpsest_power_cut(NULL, 0) != PALIMPSEST_INPUT;
    const void *state = NULL;
    size_t size = 0;
    wrong += palimpsest_save(NULL, &state, &size) != PALIMPSEST_INPUT;
    wrong += palimpsest_state(NULL, "", 0) != PALIMPSEST_INPUT;
    wrong += palimpsest_figures(NULL) != NULL || palimpsest_finish(NULL) != NULL;
    palimpsest_free(NULL), palimpsest_free_builder(NULL), palimpsest_free_text(NULL);
    struct palimpsest_builder *builder = palimpsest_builder("mga-8k");
    wrong += palimpsest_layer(builder, NULL) != PALIMPSEST_INPUT || palimpsest_contents(builder, 7) != PALIMPSEST_INPUT;
    wrong += palimpsest_set(builder, "ssd.blocks_per_plane", "32") || palimpsest_contents(builder, PALIMPSEST_BYTES);
    struct palimpsest_drive *drive = palimpsest_build(builder);
    wrong += palimpsest_submit(drive, &request, 0, &time) != PALIMPSEST_INPUT;
    request = (struct palimpsest_request){.kind = PALIMPSEST_WRITE, .size = 8192, .flags = 4};
    wrong += palimpsest_submit(drive, &request, 0, &time) != PALIMPSEST_INPUT;
    char data[8192] = "kept";
    request = (struct palimpsest_request){.kind = PALIMPSEST_WRITE, .size = 8192, .data = data};
    wrong += palimpsest_submit(drive, &request, 0, &time) || time != 0;
    wrong += palimpsest_completed(drive, NULL, 4) != 0;
    request.kind = PALIMPSEST_READ;
    wrong += palimpsest_submit(drive, &request, 1000, &time) || time != 1;
    int same = 0;
    while (palimpsest_in_flight(drive) > 0) {
        wrong += palimpsest_advance(drive, PALIMPSEST_FOREVER);
        while (palimpsest_completed(drive, &completion, 1) == 1)
            same += completion.ticket == 1 && completion.size == 8192 && !memcmp(completion.data, data, 8192);
    }
    wrong += same != 1 || palimpsest_power_cut(drive, 1u << 30) != PALIMPSEST_INPUT;
    char *text = palimpsest_figures(drive);
    wrong += strstr(text, "write_amplification") == NULL;
    palimpsest_free_text(text);
    wrong += palimpsest_save(drive, &state, &size) != PALIMPSEST_INPUT;  /* the drive stores bytes */
    palimpsest_free(drive);
    builder = palimpsest_builder("mga-8k");
    wrong += palimpsest_set(builder, "ssd.blocks_per_plane", "32");
    drive = palimpsest_build(builder);
    request = (struct palimpsest_request){.kind = PALIMPSEST_WRITE, .size = 8192};
    wrong += palimpsest_submit(drive, &request, 0, NULL) || palimpsest_advance(drive, PALIMPSEST_FOREVER);
    wrong += palimpsest_completed(drive, &completion, 1) != 1 || palimpsest_save(drive, NULL, &size) == 0;
    wrong += palimpsest_save(drive, &state, &size) || state == NULL || size < 1000;
    uint64_t saved_at = palimpsest_now(drive);
    for (int again = 0; again < 2; again++) {
        builder = palimpsest_builder("mga-8k");
        wrong += palimpsest_state(builder, NULL, 4) != PALIMPSEST_INPUT;
        wrong += palimpsest_set(builder, "ssd.blocks_per_plane", "32");
        wrong += palimpsest_state(builder, state, size - again);  /* the second time cut short */
        struct palimpsest_drive *restored = palimpsest_build(builder);
        wrong += (restored == NULL) != again || (restored && palimpsest_now(restored) != saved_at);
        palimpsest_free(restored);
    }
    palimpsest_free(drive);
    return wrong;
}
""",
        encoding="utf-8",
    )
    program = tmp_path / "null"
    flags = ("-Wall", "-Wextra", "-Werror", f"-I{library}/include", f"{library}/lib/libpalimpsest.a")
    _call("cc", "-std=c11", source, *flags, "-lpthread", "-lm", "-ldl", "-o", program)
    _call(program)


@pytest.mark.contract
@pytest.mark.parametrize("tool", ["pkg-config", "cmake"])
def test_build_tools_find_the_library(library: Path, tool: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    program = tmp_path / "replay"
    if tool == "pkg-config":
        paths = {**os.environ, "PKG_CONFIG_PATH": f"{library}/lib/pkgconfig"}
        flags = _call(tool, "--cflags", "--libs", "palimpsest", env=paths).stdout.strip()
        _call("sh", "-c", f"cc '{SOURCE}' {flags} -o '{program}'")
    else:
        lists = tmp_path / "CMakeLists.txt"
        lists.write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(replay C)\nfind_package(palimpsest REQUIRED)\n"
            f'add_executable(replay "{SOURCE}")\ntarget_link_libraries(replay palimpsest::static)\n',
            encoding="utf-8",
        )
        _call(tool, "-S", tmp_path, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={library}")
        _call(tool, "--build", tmp_path)
    done = subprocess.run(
        (program, "none.csv", "default"), capture_output=True, text=True, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": f"{library}/lib"},
    )  # fmt: skip
    assert "No such file" in done.stderr
