"""Admission is a pure decision: which number blocks, and what would pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.admission import Elsewhere, Host, Peer, admit
from bot.model import Refused

FREE = Host(slots=("wt-1", "wt-2", "wt-3", "wt-4"), taken={}, live=0, cap=4)


def test_the_first_free_slot_in_order_is_taken() -> None:
    assert admit(replace(FREE, taken={"wt-1": "f:a/a", "wt-3": "f:c/c"}, live=2), "f:b/b") == "wt-2"


@pytest.mark.parametrize(
    ("host", "reason", "what_would_pass"),
    [
        (replace(FREE, live=None), "registry_unreadable", "`leadsman doctor --repair`"),
        (replace(FREE, paused=True), "paused", "`leadsman unpause`"),
        (replace(FREE, live=4), "crew_cap_reached", "4 runs are live and the cap is 4"),
        (replace(FREE, slots=("wt-1",), taken={"wt-1": "f:a/a"}, live=1), "no_free_slot", "All 1 slots are held"),
        (replace(FREE, taken={"wt-1": "f:b/b"}, live=1), "repo_busy", "1 of at most 1 runs"),
        (replace(FREE, taken={"wt-1": "f:B/B"}, live=1), "repo_busy", "1 of at most 1 runs"),  # as forges compare names
        (replace(FREE, remaining_seconds=3629, run_limit=900), "insufficient_cycle_time", "4 x 900 s + 30 s = 3630 s"),
        (replace(FREE, load_p95=4.01, cpus=2), "host_overloaded", "The load is 4.01 on 2 CPUs; 4 or less passes"),
        (replace(FREE, retrying=3, retry_cap=2), "retry_pressure", "at most 2 pass"),
    ],
)
def test_a_refusal_names_the_number_that_blocks_and_what_would_pass(
    host: Host, reason: str, what_would_pass: str
) -> None:
    refusal = admit(host, "f:b/b")
    assert isinstance(refusal, Refused)
    assert reason == refusal.reason
    assert what_would_pass in refusal.what_would_pass


@pytest.mark.parametrize(
    "host",
    [
        replace(FREE, live=3),
        replace(FREE, load_p95=4.0, cpus=2),
        replace(FREE, remaining_seconds=3630, run_limit=900),
        replace(FREE, cap=1, remaining_seconds=930, run_limit=900),
        replace(FREE, retrying=2, retry_cap=2),
        replace(FREE, taken={"wt-1": "f:b/b"}, live=1, parallel={"f:b/b": 2}),
    ],
)
def test_what_is_exactly_at_its_bound_passes(host: Host) -> None:
    assert isinstance(admit(host, "f:b/b"), str)


HALF = {"wt-1": "f:a/a", "wt-2": "f:c/c"}
FULL = {f"wt-{n}": f"f:r/r{n}" for n in range(1, 5)}
HERE = replace(FREE, name="middle", cap=99)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (replace(HERE, taken=HALF, peers=[Peer("anna", 4, 3, True)]), "wt-3"),  # the least loaded takes it
        (replace(HERE, taken=HALF, peers=[Peer("zoe", 4, 1, True)]), Elsewhere("zoe")),
        (replace(HERE, taken=HALF, peers=[Peer("zoe", 9, 4, True)]), Elsewhere("zoe")),  # by part, not by number
        (replace(HERE, taken=HALF, peers=[Peer("anna", 2, 1, True)]), Elsewhere("anna")),  # ties by name
        (replace(HERE, taken=HALF, peers=[Peer("zoe", 2, 1, True)]), "wt-3"),
        (replace(HERE, taken=HALF, peers=[Peer("anna", 4, 0, False)]), "wt-3"),  # full, or overloaded: it can't
        (replace(HERE, taken=FULL, peers=[Peer("zoe", 4, 3, True)]), Elsewhere("zoe")),
        (replace(HERE, load_p95=99.0, peers=[Peer("zoe", 4, 3, True)]), Elsewhere("zoe")),
        (
            replace(HERE, taken=FULL, peers=[Peer("zoe", 2, 2, False)]),
            Refused("no_free_slot", "All 6 slots are held; one has to be given back."),
        ),
        (
            replace(HERE, elsewhere=["f:b/b"], peers=[Peer("zoe", 4, 1, True)]),  # one run a repository, on all hosts
            Refused("repo_busy", "1 of at most 1 runs go on in this repository: one has to end."),
        ),
    ],
)
def test_of_several_hosts_the_least_loaded_takes_a_run(host: Host, expected: str | Refused | Elsewhere) -> None:
    assert expected == admit(host, "f:b/b")


def test_hosts_that_see_the_same_agree_on_who_takes_a_run() -> None:
    held = {"anna": 3, "berta": 1, "carla": 1, "dora": 4}

    def seen_by(name: str) -> Host:
        taken = {f"wt-{n}": f"f:{name}/r{n}" for n in range(1, held[name] + 1)}
        peers = [Peer(other, 4, count, count < 4) for other, count in held.items() if other != name]
        return replace(HERE, name=name, taken=taken, peers=peers)

    answers = {name: admit(seen_by(name), "f:b/b") for name in held}
    expected = {"anna": Elsewhere("berta"), "berta": "wt-2", "carla": Elsewhere("berta"), "dora": Elsewhere("berta")}
    assert expected == answers
