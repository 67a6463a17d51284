"""Ticket systems beside the forges: a forge is its own tracker."""

from __future__ import annotations

TRACKERS = {"redmine": "bot.trackers.redmine"}
"""kind -> module, imported only for a kind that the configuration names. Each has `Settings` (its table)."""
