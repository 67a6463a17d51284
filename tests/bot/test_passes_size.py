"""How many passes a host has: the CPUs, and what control groups leave of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cpus import _quotas, host_size
from bot.pool import digits
from tests.bot.passes_host import SIZE

V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
V1_MOUNT = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V1_OTHER = "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"


def v2(system: Path) -> None:
    """A service limited to 1.5 CPUs inside a slice limited to 6."""
    lay(system, "0::/work.slice/shop.service\n", V2_MOUNT)
    quota(system, "sys/fs/cgroup/work.slice/cpu.max", "600000 100000\n")
    quota(system, "sys/fs/cgroup/work.slice/shop.service/cpu.max", "150000 100000\n")


def v2_without_limits(system: Path) -> None:
    lay(system, "0::/work.slice\n", V2_MOUNT)
    quota(system, "sys/fs/cgroup/work.slice/cpu.max", "max 100000\n")


def v2_in_a_container(system: Path) -> None:
    """The group's path is the host's, its mount shows the container's part of it."""
    lay(system, "0::/docker/abc/inner\n", V2_MOUNT.replace("0:28 / ", "0:28 /docker/abc "))
    quota(system, "sys/fs/cgroup/cpu.max", "400000 100000\n")
    quota(system, "sys/fs/cgroup/inner/cpu.max", "350000 100000\n")


def v2_from_outside_of_the_namespace(system: Path) -> None:
    lay(system, "0::/../../elsewhere\n", V2_MOUNT)
    quota(system, "sys/fs/cgroup/cpu.max", "200000 100000\n")


def v1(system: Path) -> None:
    lay(system, "5:cpuset:/box\n4:cpu,cpuacct:/box\n0::/\n", V1_OTHER + V1_MOUNT)
    quota(system, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    quota(system, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    quota(system, "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "210000\n")
    quota(system, "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n")


def broken(system: Path) -> None:
    lay(system, "0::/a/b/c/d\n", V2_MOUNT)
    for path, text in (("a", ""), ("a/b", "much 100000\n"), ("a/b/c", "100000 0\n"), ("a/b/c/d", "100000\n")):
        quota(system, f"sys/fs/cgroup/{path}/cpu.max", text)


def none_at_all(system: Path) -> None:
    """No /proc, as in a bare chroot."""


def lay(system: Path, groups: str, mounts: str) -> None:
    quota(system, "proc/self/cgroup", groups)
    quota(system, "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n" + mounts)


def quota(system: Path, path: str, text: str) -> None:
    (system / path).parent.mkdir(parents=True, exist_ok=True)
    (system / path).write_text(text)


@pytest.mark.parametrize(
    ("limits", "lay_out"),
    [
        ([2, 6], v2),
        ([], v2_without_limits),
        ([4, 4], v2_in_a_container),
        ([2], v2_from_outside_of_the_namespace),
        ([3], v1),
        ([], broken),
        ([], none_at_all),
    ],
)
def test_control_groups_limit_the_pool(tmp_path: Path, limits: list[int], lay_out: Callable[[Path], None]) -> None:
    lay_out(tmp_path)
    assert limits == sorted(_quotas(str(tmp_path)))
    assert min([SIZE, *limits]) == host_size(str(tmp_path))


def test_a_fraction_of_a_cpu_still_gives_one_pass(tmp_path: Path) -> None:
    lay(tmp_path, "0::/\n", V2_MOUNT)
    quota(tmp_path, "sys/fs/cgroup/cpu.max", "10000 100000\n")
    assert 1 == host_size(str(tmp_path))


@pytest.mark.parametrize(
    ("right", "text"), [(True, "0"), (True, "000000001"), (False, "0000000001"), (False, "\uff11")]
)
def test_a_count_is_nine_ascii_digits_at_most(right: bool, text: str) -> None:
    assert right is digits(text)
