"""What every table of the configuration is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A table: frozen, strict about unknown keys. A field's `description` is what `leadsman config explain` prints."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)
