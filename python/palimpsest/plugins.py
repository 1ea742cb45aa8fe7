"""Plug-ins: layers, policies and trace formats of installed distributions.

A distribution names an object of this module by an entry point of the group `palimpsest.plugins`; its names then work
like built-in ones. In `their_layer/__init__.py`:

>>> PLUGIN = Plugin(layers=["_native"], policies={"ftl.victim": {"oldest": "their_layer.policy:Oldest"}})

and in `pyproject.toml`: `[project.entry-points."palimpsest.plugins"]`, `their-layer = "their_layer:PLUGIN"`.

Plug-ins are loaded once in a process, before the first configuration is read. A plug-in that cannot be loaded costs one
line on standard error. `docs/plugins.md` is the guide. Ignored: distributions in archives.
"""

import contextlib
import functools
import os
import pkgutil
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InputError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "palimpsest.plugins"
_LAYER = "ftl.name"
_FORMAT = "trace format"
_LIBRARY_ENDINGS = (".so", ".pyd", ".dylib", ".dll")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""Form of the name of a policy, and of a layer that `new-layer` writes."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The contents of a plug-in.

    Attributes:
        layers: libraries with layers in Rust (`palimpsest_layer::plugin!`): file names beside the module with this
            object, with or without an ending.
        policies: classes for the keys `ftl.victim`, `ftl.classifier` and `ftl.gc_pace`, by key and short name, each as
            `MODULE:CLASS`; the module is imported when a drive uses the policy.
        classes: layers in Python by name, each as `MODULE:CLASS` (`palimpsest.layers`); imported when a drive uses the
            layer.
        formats: trace formats by name, each as `MODULE:CLASS` (`palimpsest.formats`); imported when a trace is read.
    """

    layers: Sequence[str] = ()
    policies: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Loaded:
    """A plug-in of this process: its distribution with version, and its names, or the reason why it has failed."""

    owner: str
    module: str
    layers: list[str] = field(default_factory=list)
    policies: dict[tuple[str, str], str] = field(default_factory=dict)
    libraries: list[Path] = field(default_factory=list)
    problem: str = ""


_lock = threading.RLock()
_loaded: list[_Loaded] | None = None
_says = True


def quiet() -> None:
    """Keeps plug-ins that cannot be loaded from standard error: in workers, whose parent has named them."""
    global _says
    _says = False


def load() -> None:
    """Loads all plug-ins, if that has not happened. The native module calls this before it reads a configuration."""
    _all()


def _all() -> list[_Loaded]:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = []  # code of a plug-in that uses palimpsest while it loads sees the plug-ins before it
            for point in _points():
                _loaded.append(_load(point))
        return _loaded


def _points() -> "list[EntryPoint]":
    if not _is_named():
        return []
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda point: (_owner(point), point.name))


def _is_named() -> bool:
    """True if an installed distribution names the group. Importing `importlib.metadata` takes 20 times as long."""
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for each in os.scandir(folder or "."):
                if each.name.endswith((".dist-info", ".egg-info")):
                    with contextlib.suppress(OSError):
                        if GROUP.encode() in Path(each.path, "entry_points.txt").read_bytes():
                            return True
    return False


def _owner(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "a distribution without name"


def _load(point: "EntryPoint") -> _Loaded:
    loaded = _Loaded(_owner(point), point.module)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            plugin = point.load()
        if not isinstance(plugin, Plugin):
            raise InputError(f"{point.value} is of type {type(plugin).__name__}; expected palimpsest.plugins.Plugin")
        for member in plugin.layers:
            _add_layer(loaded, member)
        for key, named in {_LAYER: plugin.classes, _FORMAT: plugin.formats, **plugin.policies}.items():
            for name, place in named.items():
                _add_policy(loaded, key, name, place)
    except InputError as error:
        loaded.problem = one_line(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit, too
        loaded.problem = one_line(f"{point.value}: {type(error).__name__}: {error}")
    if loaded.problem and _says:
        print(f"warning: plug-in {loaded.owner}: {loaded.problem}", file=sys.stderr)
    return loaded


def _add_layer(loaded: _Loaded, member: object) -> None:
    """Adds the layers of one member of `Plugin.layers`."""
    if not isinstance(member, str):
        raise InputError(f"layers: {member!r:.80}; expected the name of a library")
    folder = _file(loaded.module).parent
    library = next((path for path in _libraries(folder, member) if path.is_file()), None)
    if library is None:
        raise InputError(f"layers: {folder} has no library {member}; expected one, as the wheel has")
    try:
        loaded.layers += _core.add_library(str(library), loaded.owner)
    except InputError as error:
        raise InputError(f"{library.name}: {error}") from None
    loaded.libraries.append(library)


def _libraries(folder: Path, name: str) -> Iterator[Path]:
    if name.endswith(_LIBRARY_ENDINGS):
        yield folder / name
        return
    place = folder / name
    yield from sorted(each for each in place.parent.glob(f"{place.name}.*") if each.name.endswith(_LIBRARY_ENDINGS))


def _add_policy(loaded: _Loaded, key: str, name: str, place: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{key}: {name!r:.80}; expected a name of small letters, digits and dashes")
    if not isinstance(place, str) or place.count(":") != 1:
        raise InputError(f"{key} = {name}: {place!r:.80}; expected MODULE:CLASS")
    if key == _FORMAT:
        _core.add_format(name, loaded.owner)
    else:
        _core.add_policy(key, name, loaded.owner)
    loaded.policies[key, name] = place


def _file(module: str) -> Path:
    return Path(sys.modules[module].__file__ or ".")


def policy(key: str, name: str) -> tuple[Any, str]:
    """The class of a policy that a plug-in has, and the digest of its code. Raises InputError if that fails."""
    loaded = next((each for each in _all() if (key, name) in each.policies), None)
    if loaded is None:
        raise InputError(f"{key} = {name}: no plug-in of this process has this name; expected FILE.py:CLASS")
    place = loaded.policies[key, name]
    try:
        return pkgutil.resolve_name(place), _digest(loaded)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = f"{key} = {name}: plug-in {loaded.owner}: {place}"
        raise InputError(f"{where}: {type(error).__name__}: {error}; expected MODULE:CLASS that loads") from error


def trace_format(name: str) -> tuple[Any, str]:
    """The class of a trace format that a plug-in has, and the digest of its code. Raises InputError if that fails."""
    return policy(_FORMAT, name)


def _digest(plugin: _Loaded) -> str:
    """The digest of the code of a plug-in: the files of its package, its libraries, and other modules with its classes.

    Ignored: modules that these import from other packages.
    """
    return _digest_of(plugin.module, tuple(sorted({place.partition(":")[0] for place in plugin.policies.values()})),
                      tuple(plugin.libraries))  # fmt: skip


@functools.cache
def _digest_of(module: str, others: tuple[str, ...], libraries: tuple[Path, ...]) -> str:
    import hashlib
    from importlib.util import find_spec

    file = _file(module)
    files = {file, *libraries}
    if file.name == "__init__.py":
        files |= {path for path in file.parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    for other in others:
        with contextlib.suppress(ImportError, ValueError):
            if (spec := find_spec(other)) and spec.origin:
                files.add(Path(spec.origin))
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in files if path.is_file()):
        content = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
        name = os.path.relpath(path, file.parent).replace(os.sep, "/")
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()


def used(config: Mapping[str, Any], trace_format: str | None = None) -> dict[str, str]:
    """The plug-ins that a resolved configuration and a trace format use, with the digests of their code."""
    ftl = config.get("ftl", {})
    layer = str(ftl.get("name"))
    # A layer in Python is among the policies, as `ftl.name`.
    named = {(f"ftl.{key}", str(value).partition("@")[0]) for key, value in ftl.items()} | {(_FORMAT, trace_format)}
    return {each.owner: _digest(each) for each in _all() if layer in each.layers or named & each.policies.keys()}


def digest(owner: str) -> str | None:
    """The digest of the code of a plug-in, by its distribution and version; None if not loaded."""
    return next((_digest(each) for each in _all() if each.owner == owner and not each.problem), None)


def names(key: str) -> list[tuple[str, str]]:
    """Policies of plug-ins for a key, each with the distribution."""
    return [(name, f"of the plug-in {each.owner}") for each in _all() for of, name in each.policies if of == key]


def entries(kind: str) -> list[tuple[str, str]]:
    """Names of a kind with descriptions, for `palimpsest list`; of plug-ins, with all that each adds or its problem."""
    if kind == "plugins":
        return [(each.owner, _described(each)) for each in _all()]
    key = {"victims": "ftl.victim", "classifiers": "ftl.classifier", "ftls": _LAYER}.get(kind, "")
    return _core.list_registry(kind) + names(key)


def _described(plugin: _Loaded) -> str:
    parts = [f"layers {', '.join(plugin.layers)}"] if plugin.layers else []
    parts += [f"{key} = {name}" for key, name in plugin.policies]
    return "; ".join(([f"failed: {plugin.problem}"] if plugin.problem else []) + parts) or "nothing"
