"""`[trackers.<name>] kind = "redmine"`: where it is, who the bot is there, and what it may do with tickets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bot.settings import EnvName, WebAddress
from bot.settings import Settings as Table
from bot.tasks import Texts

Status = Annotated[str, Field(min_length=1)]


class Settings(Table):
    """`[trackers.*]` with `kind = "redmine"`."""

    kind: Literal["redmine"] = Field(description="redmine")
    url: WebAddress = Field(description="address of the site, with its path where it has one")
    api_key_env: EnvName | None = Field(default=None, description="environment variable with the bot user's API key")
    api_key_file: str | None = Field(default=None, min_length=1, description="file with it; one of the two")
    webhook_secret_env: Annotated[tuple[EnvName, ...], Field(strict=False)] = Field(
        default=(), description="environment variables with the secrets that Redmine 7 and later signs with"
    )
    webhook_token_env: EnvName | None = Field(
        default=None, description="environment variable with the token in the address that the older plugin posts to"
    )
    allowed_bots: Texts = Field(default=(), description="logins of bots whose notes count as a person's")
    timeout_seconds: int = Field(default=20, gt=0, le=300, description="how long one answer may keep silent")
    claim_enabled: bool = Field(default=False, description="may the bot claim tickets here")
    claim_status: Status = Field(default="In Progress", description="status of a ticket while the bot holds it")
    claimable_status: Status = Field(default="New", description="status of a ticket that may be claimed")
    status_map: Mapping[Status, Status] = Field(
        default={"In Progress": "Resolved"}, description="claim status -> status after a run that ended well"
    )
    claim_limit_seconds: int | None = Field(
        default=None,
        ge=0,
        le=315_360_000,
        description="a claim twice as old, without a report, is given back; 0 = never; default: its run's own limit",
    )
    poll_seconds: int = Field(default=30, ge=5, le=86_400, description="seconds between looks at what changed")
    formatting: Literal["auto", "textile", "markdown"] = Field(
        default="auto", description="how the site reads notes; auto = as its public feed shows, else textile"
    )
    attach_log: bool = Field(default=False, description="attach the log of a run to its report")
    attach_log_bytes: int = Field(
        default=5_000_000,
        ge=1_000,
        le=100_000_000,
        description="of a longer log, the end; Redmine's own limit is 5 MiB unless somebody changed it",
    )
    run_link_field: str | None = Field(default=None, min_length=1, description="custom field that gets the run's link")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.api_key_env is None) == (self.api_key_file is None):
            raise ValueError("needs exactly one of api_key_env and api_key_file")
        if self.claim_status.casefold() == self.claimable_status.casefold():
            raise ValueError(f'claim_status and claimable_status are both "{self.claim_status}"; they must differ')
        if self.claim_enabled and self.claim_status not in self.status_map:
            raise ValueError(f'status_map needs an entry for the claim status "{self.claim_status}"')
        return self
