"""The native module that simulates: the package's own, or one with more layers that `PALIMPSEST_CORE` names.

A crate that adds layers builds a module with the same functions (docs/write-an-ftl.md, "A project of your own"), which
replaces `palimpsest._core` before the first import.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

VARIABLE = "PALIMPSEST_CORE"
_NAME = "palimpsest._core"


def _choose() -> str | None:
    """Loads the module of the environment; returns the reason of a failure, which commands print in one line."""
    named = os.environ.get(VARIABLE, "")
    if not named or _NAME in sys.modules:
        return None
    try:
        module = _load(named)
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return f"{VARIABLE}={named}: {reason}; expected the path of a library of layers, or an installed module"
    if not hasattr(module, "configuration_keys"):
        return f"{VARIABLE}={named}: no simulator; expected a library whose module calls palimpsest::module"
    sys.modules[_NAME] = module
    return None


def _load(named: str) -> ModuleType:
    """Loads the module of that path or name. Raises ImportError if that fails."""
    path = Path(named)
    if not (os.sep in named or path.suffix in {".so", ".dylib", ".pyd", ".dll"}):
        return importlib.import_module(named)
    if not path.is_file():
        raise ImportError("there is no such file")
    name = path.name.split(".")[0].removeprefix("lib")
    loader = importlib.machinery.ExtensionFileLoader(name, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(name, path.resolve(), loader=loader)
    if spec is None:
        raise ImportError("the file is no Python module")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PROBLEM = _choose()
"""The reason why loading the module of the environment failed; None without a failure."""
