"""The layer of this package."""

from palimpsest.plugins import Plugin

PLUGIN = Plugin(classes={"ring": "ring_layer.layer:Ring"})
