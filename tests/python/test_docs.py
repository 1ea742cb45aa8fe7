"""Runs every command and snippet of the documents unchanged, in a folder that has the files they name."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import documents
import foreign_files
import shown
from conftest import COMMAND, ROOT, Command
from documents import COUNTS, SPEC, Block
from loaded import Loaded
from palimpsest import states

pytestmark = pytest.mark.contract

MAKE_TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
COMMANDS = (
    "demo", "figure", "rerun", "cite", "why",
    "run", "compare", "serve", "nvme", "attach", "detach", "mount", "crash", "check", "live",
    "objects", "sweep", "leaderboard", "reproduce", "validate", "fit", "report", "list", "show", "help", "new-layer",
    "completion",
    "trace info", "trace convert", "trace synth", "import mqsim", "import femu", "import simplessd",
    "image info", "image check", "image compact",
)  # fmt: skip
GENERATED_FILES = (
    "images/wom-codes.svg",
    "live/index.html",
    *(f"images/gallery-{kind}.svg" for kind in ("cdf", "tail", "bars", "time", "lines", "heat")),
)
"""Files that `make docs` adds: pictures of a table or of runs (`tools/gallery.py`), and the live lab."""
LONG = {
    "palimpsest demo": "takes seconds of a large drive; tools/check_wheel.py runs the demo",
    "--engine": "needs a cluster; test_sweep.py starts one",
    "reproduce": "takes a minute or more; test_reproduce*.py run each of them",
    "validate": "takes a minute; test_validate.py runs the smallest rows",
    "--against": "needs output of fio; test_against.py has some",
    "palimpsest leaderboard": "takes a minute; test_leaderboard.py runs a small one",
    "palimpsest fit": "takes minutes; test_fit.py fits a small drive",
    "palimpsest attach": "needs root; test_attach.py attaches drives",
    "palimpsest detach": "needs an attached drive; test_attach.py detaches some",
    "palimpsest crash": "needs programs to explore; test_crash.py explores some",
    "palimpsest objects": "fills the default drive; docs/objects.md runs one on a smaller drive",
    "palimpsest live": "serves until it is interrupted; test_live.py runs each of them",
    "palimpsest mount": "needs root; test_mount.py mounts file systems",
    "palimpsest serve": "serves until it is interrupted; test_serve.py runs each of them",
    "palimpsest nvme": "serves until it is interrupted; test_nvme.py runs each of them",
    "--precondition steady": "takes half a minute; test_cli_unit.py and the model tests run it on small drives",
}


@pytest.fixture(scope="session", autouse=True)
def path_of_the_command(loaded: Loaded | None) -> Iterator[None]:
    """Lets a shell find the command of the process that has loaded the program, or the installed one."""
    with pytest.MonkeyPatch.context() as patch:
        folders = [str(loaded.folder)] if loaded else []
        patch.setenv("PATH", os.pathsep.join([*folders, str(COMMAND.parent), os.environ["PATH"]]))
        yield


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory, palimpsest: Command) -> Path:
    """Files with the names in the documents: traces of all sorts, a drive, an image of one, a job."""
    folder = tmp_path_factory.mktemp("inputs")
    for line in documents.TRACES:
        assert shell(line, folder).returncode == 0, line
    for name, form in (("web_3.csv", "csv"), ("web_3.csv.zst", "csv"), ("old.trace", "disksim")):
        palimpsest("trace", "synth", SPEC, name, "--format", form, cwd=folder).check_returncode()
    served = ["serve", "--image", "drive.pal", "--listen", "unix:drive.sock", "--run", "true"]
    drive = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64"]
    palimpsest(*served, *drive, cwd=folder).check_returncode()
    grid = '[grid]\nftl = ["page", "subpage"]\n"ssd.over_provisioning" = ["7%", "28%"]\n'
    sweep = f'[base]\nworkload = "trade,n=500"\nprecondition = "none"\n{grid}'
    (folder / "op.toml").write_text(sweep)
    flow = {"Request_Count": 300, "IOPS": 50000}
    for name, text in (
        ("ssdconfig.xml", foreign_files.config()), ("workload.xml", foreign_files.workload(foreign_files.SYNTHETIC)),
        ("workload_scenario_1.xml", foreign_files.result(flow, {})), ("sample.cfg", foreign_files.cfg()),
    ):  # fmt: skip
        (folder / name).write_text(text)
    (folder / "job.fio").write_text("[job]\nrw=randwrite\nbs=4k\nsize=16m\niodepth=8\n")
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path) -> Path:
    """A folder of the test with these files."""
    shutil.copytree(inputs, tmp_path, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("drive.pal"))
    # A copy would fill the gigabytes of holes.
    (tmp_path / "drive.pal").hardlink_to(inputs / "drive.pal")
    return tmp_path


@pytest.fixture(scope="module", autouse=True)
def kept_states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Shares preconditioned states between all test processes, because the examples precondition the same drives."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if os.environ.get("PYTEST_XDIST_WORKER") is None else own.parent) / "states"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(states.FOLDER, str(folder))
        yield


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line as a reader's shell would."""
    if shutil.which("jq") is None:
        command = re.sub(r"\| jq [^|]+", "| cat", command)
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "100"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip


PRINTED: dict[str, subprocess.CompletedProcess[str]] = {}
"""Output of commands that use no file, which is the same everywhere in the documents."""


def read_only(command: str, folder: Path) -> subprocess.CompletedProcess[str] | None:
    """Runs a line, once for all documents, if it is a command without a file; None if it may use one."""
    text = command.partition("#")[0].strip()
    if not re.fullmatch(r"palimpsest (run|compare|list)( --json)?( \| jq [^<>]+)?", text):
        return None
    if text not in PRINTED:
        PRINTED[text] = shell(text, folder)
    return PRINTED[text]


def run_console(block: Block, folder: Path, renew: bool) -> None:
    """Runs commands and compares their output with the page, or writes the output into the page."""
    renewed: dict[str, str] = {}
    for command in documents.commands(block):
        if command.text.startswith("make "):
            assert command.text.split()[1] in MAKE_TARGETS, f"{block.place}: `make` has no such target"
            continue
        done = read_only(command.text, folder) or shell(command.text, folder)
        assert done.returncode == 0, f"{block.place}: {command.text}\n{done.stderr}"
        assert "warning" not in done.stderr, f"{block.place}: {done.stderr}"
        COUNTS["commands run"] += 1
        if command.shown is not None and not ("| jq" in command.text and shutil.which("jq") is None):
            agrees = documents.agrees(command.shown, done.stdout)
            assert agrees or renew, f"{block.place} shows another output:\n{done.stdout}"
            COUNTS["outputs compared"] += 1
            if not agrees:
                renewed[command.shown] = done.stdout
    if renewed:
        shown.renew(block, renewed)


def run_python(block: Block, folder: Path) -> None:
    """Runs a program; the first line may give the name of a file that later blocks use."""
    if called := re.match(r"# ([\w-]+\.py)\b", block.text):
        (folder / called[1]).write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{block.place}\n{done.stderr}"
    COUNTS["snippets run"] += 1


def run_toml(block: Block, folder: Path) -> None:
    """Reads a drive or a sweep; the first line may give the name of the file."""
    called = re.match(r"# ([\w-]+\.toml)\b", block.text)
    name = called[1] if called else "block.toml"
    is_sweep = tomllib.loads(block.text).keys() & {"grid", "zip", "points"}
    (folder / name).write_text(block.text, encoding="utf-8")
    done = shell(f"palimpsest sweep {name} --dry-run" if is_sweep else f"palimpsest show --ssd ./{name}", folder)
    assert done.returncode == 0, f"{block.place}\n{done.stderr}"
    COUNTS["drives and sweeps read"] += 1


def run_ini(block: Block, folder: Path) -> None:
    """Runs a job file; the first line may give the name of the file. Jobs of zones are only read, without a drive."""
    called = re.match(r"# ([\w-]+\.fio)\b", block.text)
    name = called[1] if called else "block.fio"
    (folder / name).write_text(block.text, encoding="utf-8")
    if "zonemode=zbd" in block.text:
        return
    done = shell(f"palimpsest run --workload {name} --precondition none --requests 2000", folder)
    assert done.returncode == 0, f"{block.place}\n{done.stderr}"
    COUNTS["job files run"] += 1


@pytest.mark.parametrize("page", documents.pages(), ids=lambda page: page.name)
def test_page(page: Path, folder: Path, pytestconfig: pytest.Config) -> None:
    def run_commands(block: Block, folder: Path) -> None:
        run_console(block, folder, pytestconfig.getoption("--renew"))

    runners = {"console": run_commands, "python": run_python, "toml": run_toml, "ini": run_ini}
    for block in documents.blocks(page):
        known = (*documents.RUN, *documents.SHOWN)
        assert block.language in known, f"{block.place}: expected one of {', '.join(known)} after the fence"
        if block.reason:
            COUNTS["blocks that say why they are not run"] += 1
        elif block.language in runners:
            runners[block.language](block, folder)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_the_help(name: str, palimpsest: Command, folder: Path) -> None:
    examples = documents.examples(palimpsest(*name.split(), "--help").stdout)
    assert examples, f"palimpsest {name} --help has no examples"
    if name == "figure":
        drawn = f"palimpsest compare --ftl page,subpage --workload {SPEC} --precondition none --out results/both"
        assert shell(f"{drawn}; palimpsest sweep op.toml", folder).returncode == 0
    for example in examples:
        if any(long in example for long in LONG):
            COUNTS["examples left out as too long"] += 1
            continue
        done = read_only(example, folder) or shell(example, folder)
        assert done.returncode == 0, f"{example}\n{done.stderr}"
        COUNTS["examples run"] += 1


def test_all_commands_are_here(palimpsest: Command) -> None:
    for group in ("", "trace", "import", "image"):
        listed = palimpsest(*group.split(), "--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^  ([\w-]+)", listed, re.M):
            full = f"{group} {name}".strip()
            assert full in (*COMMANDS, "trace", "import", "image"), f"{full}: its examples are not run"


def test_few_features_of_layers_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "reference.md"
    subprocess.run([sys.executable, str(ROOT / "tools" / "reference.py"), str(page)], check=True)
    rows = re.findall(r"^\| `([\w-]+)` \|((?: (?:yes|refused) \|)+)$", page.read_text(encoding="utf-8"), re.M)
    refused = {name: cells.count("refused") for name, cells in rows}
    placed = {name: refused.pop(name) for name in list(refused) if name.startswith(("fdp", "fs-fdp", "zns", "fs-zns"))}
    assert sum(refused.values()) <= 20
    assert placed == {"fdp": 1, "fdp-subpage": 1, "fdp-dftl": 1, "fs-fdp": 1, "zns": 2, "fs-zns": 2}


def test_no_block_escapes() -> None:
    """A fence that the parser misses would be a block that is never run."""
    for page in documents.pages():
        fences = len(re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), re.M))
        assert fences == 2 * len(list(documents.blocks(page))), page.name


def test_links_lead_to_files_of_the_repository() -> None:
    """The repository has no pages that `make docs` generates, so links to them are dead there."""
    generated = {"reference.md", "tour.md", "pacing.md", "standings.md"}
    for page in documents.pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        targets = [target for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text) if "://" not in target]
        made = {page.parent / each for each in GENERATED_FILES}
        missing = [
            each
            for each in targets
            if each in generated or not ((page.parent / each).exists() or page.parent / each in made)
        ]
        assert missing == [], page.name


def test_output_may_leave_lines_out() -> None:
    assert documents.agrees("a\n...\nd\n", "a\nb\nc\nd\n")
    assert documents.agrees("...\n", "a\n")
    assert not documents.agrees("a\n...\nd\n", "a\nb\n")
    assert not documents.agrees("a\n", "a\nb\n")
