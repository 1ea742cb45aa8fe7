"""The layers of this package, in the library `_native`."""

from palimpsest.plugins import Plugin

PLUGIN = Plugin(layers=["_native"])
