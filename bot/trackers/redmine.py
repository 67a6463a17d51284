"""Redmine: tickets that are claimed, worked and reported on."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bot.serving import WebAddress
from bot.settings import Settings
from bot.tasks import Texts

EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Settings_(Settings):
    pass
