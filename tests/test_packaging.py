"""What is installed: the four packages, their data, and one command beside them."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENTRY = "bot/cli/entry.py"
"""Installed beside the packages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build as b; b.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_four_packages_the_command_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {"bot", "gitops", "handlers", "webhooks", "leadsman.py", "leadsman-0.1.0.dist-info"} == top
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "bot", "gitops", "handlers", "webhooks"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    here = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert here - {ENTRY} <= set(zipfile.ZipFile(wheel).namelist())
    assert (ROOT / ENTRY).read_bytes() == zipfile.ZipFile(wheel).read("leadsman.py")


def test_the_wheel_has_one_command(wheel: Path) -> None:
    points = zipfile.ZipFile(wheel).read("leadsman-0.1.0.dist-info/entry_points.txt").decode()
    assert "[console_scripts]\nleadsman = leadsman:main\n" == points


def test_the_command_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    site = tmp_path / "env/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    call = "import sys; from leadsman import main; sys.exit(main())"
    done = subprocess.run(
        [tmp_path / "env/bin/python", "-I", "-c", call, "--version"], check=True, capture_output=True, text=True
    )
    assert "leadsman 0.1.0\n" == done.stdout
