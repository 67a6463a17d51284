"""How issues are claimed on a forge: its table's words, the same as a ticket system's, with labels for statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from bot.settings import LABEL, Settings

Label = Annotated[str, Field(min_length=1, max_length=50, pattern=LABEL)]
"""50 characters are GitHub's bound; a list of issues is asked for by labels with commas between them."""


class IssueClaims(Settings):
    """The part of a forge's table about its issues."""

    claim_enabled: bool = Field(
        default=False,
        description="does the bot show its claims on issues: a label, an assignee, and two comments a run",
    )
    claim_status: Label = Field(default="in progress", description="label of an issue while the bot holds it")
    claimable_status: Label | None = Field(
        default=None, description="label of the issues that rules on a schedule may take; default: none"
    )
    status_map: Mapping[Label, Label] = Field(
        default={}, description="claim label -> label after a run that ended well; default: none"
    )
    claim_limit_seconds: int | None = Field(
        default=None,
        ge=0,
        le=315_360_000,
        description="a claim twice as old, without a report, is given back; 0 = never; default: its run's own limit",
    )

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if self.claimable_status is not None and self.claimable_status.casefold() == self.claim_status.casefold():
            raise ValueError(f'claim_status and claimable_status are both "{self.claim_status}"; they must differ')
        for claimed in self.status_map:
            if claimed != self.claim_status:
                raise ValueError(f'status_map has an entry for "{claimed}", and claim_status is "{self.claim_status}"')
        return self
