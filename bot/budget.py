"""How long a run may take: turns by difficulty, and the caps that every total must fit under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from bot.errors import UserError
from bot.model import Limit
from bot.nearest import did_you_mean
from bot.settings import Settings
from bot.tasks import Task


@dataclass(frozen=True, slots=True)
class Row:
    """One difficulty of the table that `leadsman budget` prints. Seconds, but for `total_min`."""

    difficulty: str
    turns: int
    per_turn_s: int
    total_s: int
    total_min: float
    under_run_cap: bool
    under_job_cap: bool

    @property
    def ok(self) -> bool:
        return self.turns >= 1 and self.under_run_cap and self.under_job_cap


class BudgetSettings(Settings):
    """`[budget]`."""

    per_turn_seconds: int = Field(default=90, ge=1, le=86_400, description="seconds one turn may take")
    turns: Mapping[str, int] = Field(
        default={"easy": 1, "medium": 3, "hard": 5, "diploma": 8}, description="difficulty -> turns of a run"
    )
    run_cap_seconds: int = Field(default=900, ge=1, le=604_800, description="seconds no run may exceed")
    job_cap_seconds: int = Field(
        default=1800, ge=1, le=604_800, description="seconds after which whatever starts runs is ended from outside"
    )

    def rows(self) -> tuple[Row, ...]:
        return tuple(self._row(difficulty, turns) for difficulty, turns in self.turns.items())

    def _row(self, difficulty: str, turns: int) -> Row:
        total = turns * self.per_turn_seconds
        return Row(
            difficulty=difficulty,
            turns=turns,
            per_turn_s=self.per_turn_seconds,
            total_s=total,
            total_min=round(total / 60, 2),
            under_run_cap=total <= self.run_cap_seconds,
            under_job_cap=total <= self.job_cap_seconds,
        )

    def misfits(self) -> tuple[tuple[str, str], ...]:
        """(key, what is wrong with it) for each row without a turn, or with a total that is above a cap; a total equal
        to a cap fits."""
        if not self.turns:
            return (("turns", "must have at least one difficulty"),)
        return tuple((f"turns.{row.difficulty}", self._misfit(row)) for row in self.rows() if not row.ok)

    def _misfit(self, row: Row) -> str:
        if row.turns < 1:
            return f"must be at least 1, not {row.turns}"
        over = [
            f"{name} = {cap}"
            for fits, name, cap in (
                (row.under_run_cap, "run_cap_seconds", self.run_cap_seconds),
                (row.under_job_cap, "job_cap_seconds", self.job_cap_seconds),
            )
            if not fits
        ]
        fitting = min(self.run_cap_seconds, self.job_cap_seconds) // self.per_turn_seconds
        return (
            f"{row.difficulty} takes {row.turns} x {row.per_turn_s} s = {row.total_s} s, which is above "
            f"{' and '.join(over)}; at {row.per_turn_s} s a turn {fitting} turns would fit"
        )

    def limit_for(self, task: Task, difficulty: str | None = None) -> Limit:
        """The one place a run's limit comes from. `difficulty` is what the person asked for; default: the task's.

        Raises `UserError` for a difficulty that the table does not have, or whose total does not fit under the caps.
        """
        asked = difficulty if difficulty is not None else task.difficulty
        if asked not in self.turns:
            known = ", ".join(self.turns)
            raise UserError(
                f'There is no difficulty "{asked}"{did_you_mean(asked, self.turns) or "."} Known ones are {known}.'
            )
        row = self._row(asked, self.turns[asked])
        if not row.ok:
            raise UserError(
                f"[budget] turns.{asked} is wrong: {self._misfit(row)}. Correct leadsman.toml, then ask again."
            )
        whose = "as asked" if difficulty is not None else f"of task {task.name}"
        return Limit(
            seconds=row.total_s,
            turns=row.turns,
            origin=f"[budget] {asked} ({whose}): {row.turns} x {row.per_turn_s} s",
        )
