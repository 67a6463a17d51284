"""The key that reports are signed with, and the DSSE envelope that carries a signature.

https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from bot import statefiles
from bot.errors import UserError

KEY_FILE = "report-key.pem"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Malformed(Exception):
    """What should be a signed envelope is none; the text says why."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Whom a signature is checked against."""

    key: Ed25519PublicKey

    @property
    def id(self) -> str:
        """SHA-256 of the key as DER (SubjectPublicKeyInfo), in hex: what an envelope names its signer by."""
        return hashlib.sha256(self.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    @property
    def pem(self) -> str:
        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The bot's own key."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.key.public_key())


@dataclass(frozen=True, slots=True)
class Signature:
    key_id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed payload, as it was found: nothing of it is believed before `signed_by` says so."""

    kind: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def signed_by(self, key: PublicKey) -> bool:
        return any(_verified(key, signature.value, _encoded(self.kind, self.payload)) for signature in self.signatures)


def own_key(home: Path) -> SigningKey:
    """The key of this home, made where there is none. Raises `UserError` for a file that holds no such key."""
    path = home / KEY_FILE
    if not path.exists():
        _make(path)
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, OSError) as problem:
        raise UserError(
            f"{path} holds no key ({problem}). Put the old one back: reports were signed with it."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{path} holds another kind of key than Ed25519. Put the old one back.")
    return SigningKey(key)


def _make(path: Path) -> None:
    """Puts a new key there, whole and on disk or not at all; of two that do it at once, one wins and both read it."""
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    statefiles.write_new(str(draft), pem)
    try:
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    statefiles.sync_folder(str(path.parent))


def public_key(pem: bytes) -> PublicKey:
    """The key in a PEM text. Raises `UserError` for what is no public Ed25519 key."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise UserError("This is no public key in PEM form. `leadsman key` prints the bot's.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise UserError("This is another kind of key than Ed25519. `leadsman key` prints the bot's.")
    return PublicKey(key)


def sign(key: SigningKey, payload: bytes) -> str:
    """The envelope with `payload`, as JSON on one line."""
    signature = key.key.sign(_encoded(PAYLOAD_TYPE, payload))
    return json.dumps(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": key.public.id, "sig": base64.b64encode(signature).decode()}],
        }
    )


def envelope(text: str | bytes) -> Envelope:
    """Reads an envelope. Raises `Malformed`."""
    try:
        found: Any = json.loads(text)
        signatures = tuple(Signature(str(one.get("keyid") or ""), _decoded(one["sig"])) for one in found["signatures"])
        return Envelope(str(found["payloadType"]), _decoded(found["payload"]), signatures)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise Malformed(f"it is no DSSE envelope ({type(problem).__name__})") from problem


def _encoded(kind: str, payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    name = kind.encode(errors="surrogatepass")
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def _decoded(text: str) -> bytes:
    """Base64 of either alphabet, as DSSE has it."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from problem


def _verified(key: PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
