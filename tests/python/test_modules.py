"""The order of the modules of the Python package: each may import only modules below, also inside functions.

The test reads imports from the sources, including imports for types alone and modules that a registry names as text for
`import_module`. Not counted: Python runs the `__init__` of a package before its modules.
"""

import ast
import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "python" / "palimpsest"

ORDER = """
interrupts distribution native _core errors plain plugins formats user_files policies layers files units options states
tables result engine fitting timelines intervals evidence.said evidence.life evidence.steady evidence.holding
evidence.agreement evidence.passing evidence.best evidence.fitting evidence.__init__ metrics
fair.contenders fair.conditions fair.load fair.__init__ why tenants verdicts sketches repeats summary answers
replicates comparison charts.common charts.blocks charts.flash charts.gantt charts.latency charts.parts charts.tenants
charts.time charts.volumes charts.handles charts.__init__ page fio_output against report outputs reruns views progress
parameters needs commands completion listing manual run_options new_layer checking images live_lab
serving nvme attaching mounting wear wom drives traces trace_table trace_report trace_commands objects frames
imports.record imports.elements imports.mqsim_files imports.mqsim_drive imports.mqsim_flows imports.femu
imports.simplessd imports.writing imports.agreement imports.command imports.__init__
sweeps.values sweeps.conditions sweeps.lines sweeps.definition sweeps.task sweeps.worker sweeps.finished sweeps.store
sweeps.points sweeps.table sweeps.fleet sweeps.charts sweeps.frontier sweeps.checks sweeps.show sweeps.report
sweeps.results sweeps.cluster sweeps.local sweeps.dask_engine sweeps.ray_engine sweeps.engines sweeps.board
sweeps.runs sweeps.driver sweeps.command sweeps.__init__
leaderboard.entries leaderboard.standings leaderboard.show leaderboard.page leaderboard.command leaderboard.__init__
paper.styles paper.series paper.draw paper.latex paper.command paper.__init__
reproduce.claims reproduce.figures reproduce.templates reproduce.measures reproduce.sweeps reproduce.batch
reproduce.outputs reproduce.drawing reproduce.real reproduce.study reproduce.running reproduce.papers.__init__
reproduce.papers.mga.__init__ reproduce.papers.llh.model reproduce.papers.llh.__init__
reproduce.papers.spread.__init__ reproduce.papers.codesign.__init__ reproduce.papers.womv.__init__
reproduce.__init__ reproduce.command
validate.judge validate.truth validate.measures validate.jobs validate.response validate.load validate.amplification
validate.cache validate.points validate.outputs validate.running validate.command validate.__init__
fits.space fits.measured fits.tables fits.stated fits.counters fits.fio_json fits.fio_logs
fits.trace_times fits.traces fits.files fits.work fits.search fits.determined fits.running fits.charts fits.outputs
fits.command fits.__init__
crash.history crash.windows crash.namespaces crash.nbd crash.commands crash.cuts crash.recording crash.owners
crash.checking crash.store crash.exploring crash.findings crash.page crash.command crash.__init__
folder_commands run_commands demo gym api __init__ cli __main__
"""
"""Modules of the package, lowest first. Each may import only those before it."""


FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for pattern in ("*.py", "_core.pyi")
    for path in PACKAGE.rglob(pattern)
    if "templates" not in path.parts
}
"""The file of each module, including the stub of the native module; templates are no modules."""


def imported(path: Sequence[str]) -> str | None:
    """The module that `palimpsest.a.b` imports: itself, its package, or the module that has `b`."""
    top, *parts = path
    names = (".".join(each) for each in (parts, [*parts, "__init__"], parts[:-1], [*parts[:-1], "__init__"]))
    return next((name for name in names if name in FILES), None) if top == "palimpsest" else None


def imports(source: str, module: str) -> set[str]:
    """Modules of the package that a module imports."""
    here = ["palimpsest", *module.split(".")]
    paths: list[list[str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            paths += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*(here[: -node.level] if node.level else ()), *(node.module.split(".") if node.module else ())]
            paths += [[*base, alias.name] for alias in node.names]
        elif isinstance(node, ast.Constant) and "import_module" in source:
            paths += [[*here[:-1], str(node.value)]] if ".".join([*here[1:-1], str(node.value)]) in FILES else []
    return {name for name in map(imported, paths) if name is not None}


def test_modules_import_only_what_lies_below() -> None:
    sample = """
    import palimpsest.units, json
    if TYPE_CHECKING:
        from ..result import Result
    def load():
        from . import points, nothing
        from .. import charts, _core
        return importlib.import_module(f".{dict(dask='dask_engine')[name]}", __package__)
    """
    expected = {"units", "result", "sweeps.points", "sweeps.__init__", "charts.__init__", "_core", "sweeps.dask_engine"}
    assert imports(textwrap.dedent(sample), "sweeps.engines") == expected

    order = ORDER.split()
    assert sorted(order) == sorted(FILES), "a module has no place; put it into ORDER, and into ARCHITECTURE.md"
    for place, module in enumerate(order):
        above = imports(FILES[module].read_text(encoding="utf-8"), module).difference(order[:place])
        assert not above, f"{module} imports {sorted(above)}, which do not lie below it"
    listed = " ".join(dict.fromkeys(name.partition(".")[0] for name in order))
    assert f"`{listed}`" in " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
