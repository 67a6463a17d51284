"""What GitHub itself publishes: its API's OpenAPI description, and examples of every webhook delivery.

Both come as npm packages, pinned with their checksums in published.json, fetched once into `.cache/npm`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.world.exchange import Request

_ROOT = Path(__file__).parents[2]
_CACHE = _ROOT / ".cache" / "npm"
_PINNED: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("published.json").read_text())

_REQUIRED = os.environ.get("LEADSMAN_REQUIRE") == "all"
"""Read when this is imported: later the tests' environment is a stranger's."""


def document(package: str) -> Path:
    """The package's one file that is of use. Skips the test where the registry can't be reached; fails it in CI."""
    pin = _PINNED[package]
    cached = _CACHE / f"{package.rpartition('/')[2]}-{pin['version']}.json"
    if not cached.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            fresh = unpacked(_download(package, pin, Path(folder)), pin)
            fresh.replace(cached)
    return cached


def _download(package: str, pin: dict[str, str], folder: Path) -> Path:
    wanted = f"{package}@{pin['version']}"
    call = ["npm", "pack", wanted, "--pack-destination", str(folder), "--cache", str(folder / "cache"), "--silent"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        reason = f"npm could not fetch {wanted}: it needs a registry that can be reached. {done.stderr.strip()[-300:]}"
        if _REQUIRED:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return folder / done.stdout.strip().splitlines()[-1]


def unpacked(tarball: Path, pin: dict[str, str]) -> Path:
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    if f"sha512-{base64.b64encode(digest).decode()}" != pin["integrity"]:
        raise ValueError(f"{tarball.name} is not the file that published.json names: its checksum differs.")
    target = tarball.with_suffix(".json")
    with tarfile.open(tarball) as archive:
        member = archive.extractfile(pin["file"])
        if member is None:
            raise ValueError(f"{tarball.name} holds no file {pin['file']}.")
        target.write_bytes(member.read())
    return target


@functools.cache
def examples() -> dict[str, list[Any]]:
    """Event -> payloads of its deliveries."""
    listed = json.loads(document("@octokit/webhooks-examples").read_text())
    return {one["name"]: one["examples"] for one in listed}


class OpenApi:
    """GitHub's description of its REST API, as a judge of answers."""

    def __init__(self, path: Path) -> None:
        self._whole = json.loads(path.read_text())
        self._registry: Registry[Any] = Registry(retrieve=functools.cache(self._component))  # type: ignore[call-arg]
        self._validators: dict[tuple[str, str, int], Draft202012Validator | None] = {}

    def _component(self, uri: str) -> Resource[Any]:
        """A schema by the name that `_plain` gave it; made plain only when it is asked for."""
        schema = _plain(self._whole["components"]["schemas"][uri.removeprefix(_PREFIX)])
        return DRAFT202012.create_resource(schema)

    def problems(self, request: Request) -> list[str]:
        """What is wrong with the answer to this request; empty = as described."""
        if request.template is None or request.status is None:
            return [f"{request.method} {request.path} is no call that GitHub has"]
        key = (request.template, request.method.lower(), request.status)
        if key not in self._validators:
            self._validators[key] = self._validator(*key)
        validator = self._validators[key]
        if validator is None:
            return [] if request.answer is None else [f"{key}: no body is described"]
        errors = validator.iter_errors(request.answer)
        return [f"{key} {error.json_path}: {error.message[:200]}" for error in errors if not _excused(error)]

    def _validator(self, template: str, method: str, status: int) -> Draft202012Validator | None:
        described = self._whole["paths"][template][method]["responses"]
        answer = self._resolved(described.get(str(status)))
        if answer is None and status >= 400:  # 401 and the limits' 403 may come from every call
            schema = {"$ref": "#/components/schemas/basic-error"}
        elif answer is None:
            raise LookupError(f"{method} {template} never answers {status}")
        elif "content" not in answer:
            return None
        else:
            schema = answer["content"]["application/json"]["schema"]
        return Draft202012Validator(_plain(schema), registry=self._registry)

    def _resolved(self, answer: Any) -> Any:
        while answer is not None and "$ref" in answer:
            found = self._whole
            for step in answer["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            answer = found
        return answer


@functools.cache
def openapi() -> OpenApi:
    return OpenApi(document("@octokit/openapi"))


_PREFIX = "urn:github:"
_HERE = "#/components/schemas/"


def _plain(schema: Any) -> Any:
    """OpenAPI 3.0's `nullable` said in JSON Schema's words, references made names of their own."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items()}
    reference = plain.get("$ref")
    if isinstance(reference, str) and reference.startswith(_HERE):
        plain["$ref"] = _PREFIX + reference.removeprefix(_HERE)
    if plain.get("nullable") is True:
        del plain["nullable"]
        return {"anyOf": [plain, {"type": "null"}]}
    return plain


def _excused(error: Any) -> bool:
    """Where the description is wrong about GitHub.

    A head always has a repository, it says; GitHub answers null when that fork was deleted. In the list of an App's
    installations an account must be a user and an enterprise at once; for one installation it is either.
    """
    path = [step for step in error.absolute_path if isinstance(step, str)]
    lost_fork = error.instance is None and path[-2:] == ["head", "repo"]
    return lost_fork or (path == ["account"] and error.validator == "anyOf")
