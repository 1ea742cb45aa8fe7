"""`palimpsest new-layer`: writes a plug-in: a layer in Rust or Python, or a policy or a trace format in Python.

The templates are complete projects in `templates`: `layer` (which is also `examples/ring`) and `python` with the name
`ring`, `policy` and `format` with the name `mine`. A new project has another name in their place.
"""

import keyword
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from . import _core, plugins
from .commands import command, show
from .errors import InputError

_TEMPLATES = Path(__file__).parent / "templates"
_CHECKOUT = Path(__file__).resolve().parents[2]
_CRATE = "crates/layer"
_RUST_WORDS = """
abstract alloc as async await become box break const continue core crate do dyn else enum extern false final fn for gen
if impl in let loop macro match mod move mut override priv pub ref return self static std struct super trait true try
type typeof unsafe unsized use virtual where while yield
"""
_PROFILE = '\n[profile.release]\nlto = "fat"\ncodegen-units = 1\n'


@dataclass(frozen=True, slots=True)
class _Policy:
    """A kind of policy: key, the file of the template, and another setting that the key needs."""

    key: str
    setting: str = ""


_PYTHON = "python"
_FORMAT = "format"
_POLICIES = {
    "victim": _Policy("ftl.victim"),
    "classifier": _Policy("ftl.classifier", "ftl.streams=3"),
    "pace": _Policy("ftl.gc_pace"),
}


@command("new-layer", short_help="Write a project with a layer, or a policy, of your own.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--python", "kind", flag_value=_PYTHON, help="A layer in Python.")
@click.option("--victim", "kind", flag_value="victim", help="A victim policy in Python.")
@click.option("--classifier", "kind", flag_value="classifier", help="A classifier of writes in Python.")
@click.option("--pace", "kind", flag_value="pace", help="A pace of collection in Python.")
@click.option("--format", "kind", flag_value=_FORMAT, help="A trace format in Python.")
@click.option(
    "--source", metavar="PATH|URL",
    help="Sources of the simulator, for a layer in Rust: a folder or a git repository; by default those of this "
    "installation, if known.",
)  # fmt: skip
def new_layer(folder: Path, kind: str | None, source: str | None) -> None:
    """Write a project of your own, ready to build, test and change: a layer, a policy or a trace format.

    The last part of DIR names the layer, policy or format. Once installed by pip, the project is a plug-in: its names
    work like built-in ones.

    \b
    Examples:
      palimpsest new-layer lean
      palimpsest new-layer first --python
      palimpsest new-layer oldest --victim
      palimpsest new-layer our-array --format
    """
    if kind is not None and source is not None:
        raise InputError(f"--source: a project with --{kind} has no crates; expected --source without --{kind}")
    name = folder.resolve().name
    _check_name(name, kind)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: there is such a file or folder already; expected a new or an empty folder")
    if kind is None:
        crate, lock = _crate(source)
        files = dict(_layer(name, crate))
    elif kind == _PYTHON:
        files, lock = dict(_layer(name, "", _PYTHON)), None
    elif kind == _FORMAT:
        files, lock = dict(_format(name)), None
    else:
        files, lock = dict(_policy(name, _POLICIES[kind], f"{kind}.py")), None
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        if lock is not None:
            shutil.copyfile(lock, folder / "Cargo.lock")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a folder that can be written") from error
    package = {_PYTHON: "layer/layer.py", _FORMAT: "format/format.py"}.get(kind or "", "policy/policy.py")
    main = f"src/{_snake(name)}.rs" if kind is None else f"src/{_snake(name)}_{package}"
    show(f"{folder}: a plug-in with {name}, in {main}\nnext: pip install {folder}")


def _snake(name: str) -> str:
    return name.replace("-", "_")


def _check_name(name: str, kind: str | None) -> None:
    """Refuses names that the simulator, Rust or Python does not take."""
    if not plugins.NAME.fullmatch(name):
        raise InputError(
            f"{name}: expected a folder named as the layer: small letters, digits and dashes, such as lean"
        )
    if _snake(name) in _RUST_WORDS.split() or keyword.iskeyword(name) or name.startswith("palimpsest"):
        raise InputError(f"{name}: a word of Rust or Python, or a name of palimpsest; expected another name")
    if kind in _POLICIES:
        key = _POLICIES[kind].key
        taken = {word for known, words, _ in _core.configuration_keys() if known == key for word in words}
        taken |= {known for known, _ in plugins.names(key)}
    elif kind == _FORMAT:
        taken = {known for known, _ in plugins.entries("traces")}
    else:
        tables = {known.partition(".")[0] for known, _, _ in _core.configuration_keys()}
        taken = tables | {known for known, _ in plugins.entries("ftls")}
    if name in taken or _snake(name) in taken:
        raise InputError(f"{name}: the name is taken; `palimpsest list` prints names; expected another")


def _crate(source: str | None) -> tuple[str, Path | None]:
    """The dependency on the crate, as TOML, and the lock file of the sources."""
    if source is not None and re.match(r"[\w+.-]+://|[\w.-]+@[\w.-]+:", source):
        return f'{{ git = "{source}" }}', None
    checkout = _CHECKOUT if source is None else Path(source).resolve()
    if not (checkout / _CRATE / "Cargo.toml").is_file():
        if source is not None:
            raise InputError(f"--source {source}: no {_CRATE} there; expected a checkout of palimpsest, or an URL")
        where = "palimpsest is installed from a wheel, and its crates are in no registry"
        raise InputError(f"--source: {where}; expected the path of a checkout, or the URL of a git repository")
    path = str(checkout / _CRATE)
    quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
    lock = checkout / "Cargo.lock"
    return f"{{ path = {quoted} }}", lock if lock.is_file() else None


def _layer(name: str, crate: str, template: str = "layer") -> Iterator[tuple[str, str]]:
    """Paths and texts of a project with a layer."""
    root = _TEMPLATES / template
    for path in _files(root):
        text = path.read_text(encoding="utf-8")
        if path.name == "Cargo.toml":
            text = re.sub(r"(palimpsest-layer = ).*", lambda found: found[1] + crate, text) + _PROFILE
        yield _renamed(path.relative_to(root).as_posix(), "ring", name), _renamed(text, "ring", name)


def _policy(name: str, policy: _Policy, module: str) -> Iterator[tuple[str, str]]:
    """Paths and texts of a project with a policy."""
    root = _TEMPLATES / "policy"
    setting, _, value = policy.setting.partition("=")
    test = f'"{policy.key}": "mine",' + (f'\n    "{setting}": {value},' if setting else "")
    replaced = {
        '"KEY": "mine",': test, "SETTINGS": f" --set {policy.setting}" if setting else "", "KEY": policy.key,
        "FIELD": policy.key.partition(".")[2],
    }  # fmt: skip
    for path in _files(root):
        if path.parent.name == "mine_policy" and path.name not in ("__init__.py", module):
            continue
        text = path.read_text(encoding="utf-8")
        for old, new in replaced.items():
            if path.suffix != ".py" or old != "SETTINGS":
                text = text.replace(old, new)
        place = path.relative_to(root).as_posix().replace(f"/{module}", "/policy.py")
        yield _renamed(place, "mine", name), _renamed(text, "mine", name)


def _format(name: str) -> Iterator[tuple[str, str]]:
    """Paths and texts of a project with a trace format."""
    root = _TEMPLATES / "format"
    for path in _files(root):
        place, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        yield _renamed(place, "mine", name), _renamed(text, "mine", name)


def _files(root: Path) -> list[Path]:
    left_out = {"__pycache__", "target", "dist"}
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return [
        path
        for path in files
        if not left_out & {*path.relative_to(root).parts} and path.suffix not in (".so", ".pyd", ".lock")
    ]


def _renamed(text: str, old: str, name: str) -> str:
    """`text` with another name: as an identifier of a module, of a type, and elsewhere as it is."""
    snake, camel = _snake(name), "".join(part.title() for part in name.split("-"))
    text = re.sub(rf"\b{old.title()}(?=\b|[A-Z])", camel, text)
    text = re.sub(rf"\b{old}_(layers?|policy|format)\b", lambda found: f"{snake}_{found[1]}", text)
    text = re.sub(rf"(?<=mod ){old}\b|\b{old}(?=::|\.[a-z])|(?<=test_){old}\b", snake, text)
    return re.sub(rf"\b{old}\b", name, text)
