"""The server's configuration, read whole or refused whole, and what a repository may add to it."""

from __future__ import annotations

from bot.config.loading import Config, find, load
from bot.config.problems import ConfigErrors, Problem
from bot.config.repository import RepoFile, repository_file

__all__ = ["Config", "ConfigErrors", "Problem", "RepoFile", "find", "load", "repository_file"]
