"""Layers ranked on three drives, under several workloads, with an interval over seeds for each figure.

Guide: docs/leaderboard.md. `entries` defines the runs as a sweep, `standings` ranks the layers, `show` and `page`
present them.
"""
