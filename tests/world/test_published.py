"""What is fetched is what was pinned, or it is not used."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from tests.world.published import unpacked


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    path = tmp_path / "package-1.0.0.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("package/other.json", b"[]"), ("package/wanted.json", b"{}")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def integrity(path: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def test_the_one_file_is_taken_out(tarball: Path) -> None:
    pin = {"integrity": integrity(tarball), "file": "package/wanted.json"}
    assert "{}" == unpacked(tarball, pin).read_text()


def test_another_checksum_is_refused(tarball: Path) -> None:
    pin = {"integrity": integrity(tarball), "file": "package/wanted.json"}
    tarball.write_bytes(tarball.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="its checksum differs"):
        unpacked(tarball, pin)
