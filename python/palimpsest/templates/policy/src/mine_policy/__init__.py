"""The policy of this package."""

from palimpsest.plugins import Plugin

PLUGIN = Plugin(policies={"KEY": {"mine": "mine_policy.policy:Mine"}})
