"""Runs fio on the job files of tests/fio and writes fio's requests beside them, in the form that tests/fio.rs reads.

Each job has a line `# job NUMBER: COUNT requests, digest HEX`, and the first requests as KIND SECTOR+SECTORS. The
digest is FNV-1a of these texts for all requests, each with a newline. Needs fio; the tests do not.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = Path(__file__).parent.parent / "tests" / "fio"
SHOWN = 96


def digest(text: str) -> int:
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def requests(log: Path) -> list[str]:
    """The requests of an iolog, in order."""
    found = re.findall(r"^\d+ \S+ (read|write|trim|sync) (\d+) (\d+)$", log.read_text(), re.MULTILINE)
    return ["s" if kind == "sync" else f"{kind[0]}{int(at) // 512}+{int(size) // 512}" for kind, at, size in found]


def split_jobs(text: str) -> str:
    """The job file with the copies of a job written out, each with a separate log."""
    jobs: list[list[str]] = []
    for section in re.split(r"(?m)^(?=\[)", re.sub(r"(?m)^#.*\n", "", text)):
        copies = re.search(r"(?m)^numjobs=(\d+)\n", section)
        if section.startswith("[global]") or not section:
            jobs.append([section])
        else:
            jobs.append([section.replace(copies[0] if copies else "\0", "")] * (int(copies[1]) if copies else 1))
    lines, number = "", 0
    for section in (copy for job in jobs for copy in job):
        if section.startswith("[") and not section.startswith("[global]"):
            number += 1
            section = f"{section.rstrip()}\nwrite_iolog=log.{number}\n"
        lines += section
    return lines


def run(job: Path) -> str:
    """The text of the log of a job file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.fio").write_text(split_jobs(job.read_text()))
        # A trim needs an engine with trims; other requests need a file of the region's size.
        engine = "null" if "trim" in job.read_text() else "psync"
        command = ["fio", f"--ioengine={engine}", "--filename=drive", "job.fio"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{job.name}: {done.stderr or done.stdout}")
        text = ""
        for number, log in enumerate(sorted(Path(folder).glob("log.*")), 1):
            issued = requests(log)
            value = digest("".join(f"{request}\n" for request in issued))
            text += f"# job {number}: {len(issued)} requests, digest {value:016x}\n"
            for start in range(0, min(len(issued), SHOWN), 12):
                text += " ".join(issued[start : min(start + 12, SHOWN)]) + "\n"
        return text


if __name__ == "__main__":
    for job in sorted(JOBS.glob("*.fio")):
        job.with_suffix(".log").write_text(run(job))
