"""`palimpsest import mqsim`, `femu` and `simplessd`: a drive and a workload of another simulator as files of ours."""

from pathlib import Path

import click

from .. import engine
from ..commands import Commands, show
from ..errors import InputError
from ..progress import ProgressBoard
from . import agreement, femu, mqsim_drive, mqsim_flows, simplessd, writing
from .record import Imported

_OUT = click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="FILE.toml",
    help="The drive to write; generated flows are written beside it as FILE.fio.  [default: a name like theirs]",
)  # fmt: skip
_FORCE = click.option("--force", is_flag=True, help="Replace existing files.")


class _Imports(Commands):
    """The group; a quoted command line that begins with `-device` is an argument, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments."""
        return super().parse_args(ctx, [f" {arg}" if arg.lstrip("-").startswith("device ") else arg for arg in args])


@click.group("import", cls=_Imports, short_help="Take over a drive of MQSim, FEMU or SimpleSSD.")
def import_() -> None:
    """Write a drive and a workload of another simulator as files of this one.

    Each element of their files that is approximated or not mapped is named, with the reason.
    """


@import_.command("mqsim", short_help="Take over a configuration and a workload of MQSim.")
@click.argument("config", type=click.Path(path_type=Path), metavar="SSDCONFIG.xml")
@click.argument("workload", type=click.Path(path_type=Path), metavar="WORKLOAD.xml")
@click.option(
    "--scenario", type=click.IntRange(1), default=1, metavar="N", help="The scenario of WORKLOAD.xml, from 1."
)
@click.option(
    "--result", type=click.Path(path_type=Path), metavar="FILE",
    help="Run the written files, and compare with this result of MQSim, such as workload_scenario_1.xml.",
)  # fmt: skip
@_OUT
@_FORCE
def mqsim(config: Path, workload: Path, *, scenario: int, result: Path | None, out: Path | None, force: bool) -> None:
    """Write the drive of SSDCONFIG.xml and the flows of WORKLOAD.xml.

    \b
    Examples:
      palimpsest import mqsim ssdconfig.xml workload.xml
      palimpsest import mqsim ssdconfig.xml workload.xml -o mine.toml --result workload_scenario_1.xml
    """
    of = Imported("MQSim")
    device = mqsim_drive.drive(config, of)
    scenarios = mqsim_flows.scenario(workload, scenario, device, of)
    theirs = None if result is None else agreement.Theirs(result)
    flows = max(sum(line.startswith("[") for line in of.job), 1)
    if theirs is not None:
        theirs.expect(flows)
    which = f"{workload.name}, scenario {scenario} of {scenarios}"
    drive = _write(of, out or Path(config.stem + ".toml"), config, [config.name, which], force=force)
    if theirs is None or result is None:
        return
    with ProgressBoard() as board:
        made = engine.run_one(writing.options(of, drive), board.callback("run"))
    show("")
    show(agreement.render(agreement.rows(theirs, made.to_dict(), flows), result))


@import_.command("femu", short_help="Take over a black-box drive of FEMU.")
@click.argument("line", metavar="COMMAND|FILE")
@_OUT
@_FORCE
def femu_(line: str, *, out: Path | None, force: bool) -> None:
    """Write the drive that -device femu describes in a command line, or in a script such as run-blackbox.sh.

    \b
    Example:
      palimpsest import femu "-device femu,femu_mode=1,devsz_mb=12288,nchs=8,luns_per_ch=8"
    """
    of, source = femu.convert(line.strip())
    _write(of, out or Path("femu.toml"), source, [source], force=force)


@import_.command("simplessd", short_help="Take over a configuration of SimpleSSD.")
@click.argument("config", type=click.Path(path_type=Path), metavar="FILE.cfg")
@_OUT
@_FORCE
def simplessd_(config: Path, *, out: Path | None, force: bool) -> None:
    """Write the drive of a configuration of SimpleSSD.

    \b
    Example:
      palimpsest import simplessd sample.cfg
    """
    of = simplessd.convert(config)
    _write(of, out or Path(config.stem + ".toml"), config, [config.name], force=force)


def _write(of: Imported, drive: Path, source: Path | str, sources: list[str], *, force: bool) -> Path:
    """Writes the files, and prints the fate of the elements; returns the path of the drive."""
    if not drive.name or not drive.parent.is_dir():
        raise InputError(f"--out {drive}: there is no folder {drive.parent}; expected one")
    writing.fit(of, source)
    written = writing.write(of, drive, sources, force=force)
    lines = [*of.lines(), "", f"wrote {' and '.join(map(str, written))}", writing.command(of, drive)]
    show("\n".join(lines))
    return drive
