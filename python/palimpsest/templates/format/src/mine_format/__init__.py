"""The trace format of this package."""

from palimpsest.plugins import Plugin

PLUGIN = Plugin(formats={"mine": "mine_format.format:Mine"})
