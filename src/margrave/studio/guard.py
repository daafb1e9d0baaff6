"""The guard of the studio: who may ask, what a page may do, and what becomes of an error.

It stands before everything else. A request needs this machine's address as its host, the cookie of the browser that the
studio was opened in, and, if it changes something, a page of the studio as its origin.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Mapping
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs, parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from margrave.error_sanitizer import failure_of


class Guard:
    """An ASGI application before another.

    Args:
        app: The other.
        port: The port that the studio listens on.
    """

    #: Bytes of a form.
    max_body_bytes: ClassVar[int] = 4 << 20
    #: The rights of a page: load its own script, style and pictures, ask the studio, send forms to it.
    page_policy: ClassVar[str] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    #: The answer to a request that failed.
    failure_text: ClassVar[str] = (
        "margrave failed. The terminal shows where. Your answers are in the folder of the studio: go back, and load the"
        " page again."
    )
    #: A report may use the styles in it, and nothing else.
    report_policy: ClassVar[str] = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app, self._port = app, port
        self._token, self._lock = secrets.token_urlsafe(32), Lock()
        self._secret = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address to open. One browser can use it once."""
        return f"http://127.0.0.1:{self._port}/?token={self._token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies of one host are shared by its ports, so it names the port."""
        return f"margrave_studio_{self._port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it may pass."""
        if scope["type"] == "websocket":  # the studio has none
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, self.page_policy)
        refusal = self._refusal(scope)
        if refusal is None and scope["method"] == "POST":
            refusal = await self._read_form(scope, receive)
        if refusal is not None:
            await refusal(scope, receive, answer.send)
            return
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # its text may hold values of the rows
            print(f"margrave studio: {failure_of(error).words}", file=sys.stderr)  # noqa: T201
            if not answer.started:
                failed = PlainTextResponse(self.failure_text, 500)
                await failed(scope, receive, answer.send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return _refused("The studio answers on this machine only.")
        if not self._has_cookie(headers):
            return self._let_in(scope) or _refused(
                "This browser has no access. Open the address that the terminal shows. It can be used once: start the"
                " studio again for another."
            )
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refused("The studio has no such method.")
        origin = headers.get("origin")
        if scope["method"] == "POST" and origin not in {f"http://{h}" for h in self._hosts}:
            return _refused("The request does not come from a page of the studio.")
        if scope["path"] == "/" and scope["query_string"]:
            return RedirectResponse("/", 303)
        return None

    @property
    def _hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self._port}", f"localhost:{self._port}"

    def _has_cookie(self, headers: Headers) -> bool:
        cookies = cookie_parser(headers.get("cookie", ""))
        return _equal(cookies.get(self.cookie, ""), self._secret)

    def _let_in(self, scope: Scope) -> Response | None:
        """Return a cookie for the right token, which is of no use from then on."""
        if scope["method"] != "GET" or scope["path"] != "/":
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        with self._lock:
            if not self._token or not _equal(query.get("token", [""])[0], self._token):
                return None
            self._token = ""
        response = RedirectResponse("/", 303)
        response.set_cookie(self.cookie, self._secret, httponly=True, samesite="strict")
        return response

    async def _read_form(self, scope: Scope, receive: Receive) -> Response | None:
        body = b""
        while True:
            message: Message = await receive()
            if message["type"] != "http.request":
                return _refused("The request ended early.")
            body += message.get("body", b"")
            if len(body) > self.max_body_bytes:
                return PlainTextResponse("The form is too large.", 413)
            if not message.get("more_body", False):
                break
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=100_000)
        except ValueError:
            return PlainTextResponse("The form cannot be read.", 400)
        scope["form"] = dict(pairs)
        return None


class _Answer:
    """The way back, with headers that every answer has."""

    def __init__(self, send: Send, policy: str) -> None:
        self._send, self._policy, self.started = send, policy, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in _headers(self._policy).items():
                headers.setdefault(name, value)
        await self._send(message)


def _headers(policy: str) -> Mapping[str, str]:
    return {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refused(words: str) -> Response:
    return PlainTextResponse(words, 403)
