"""The public half of the key that reports are signed with, where anybody looks for it."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response

PATH = "/.well-known/leadsman.pub"


def well_known(public_key: Callable[[], str]) -> Blueprint:
    """`public_key` is asked for anew by each request; it answers PEM."""
    site = Blueprint("well_known", __name__)

    @site.get(PATH)
    def key() -> Response:
        return Response(public_key(), mimetype="application/x-pem-file")

    return site
