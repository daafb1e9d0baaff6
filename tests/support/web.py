"""A browser without a screen: asks an ASGI application, keeps its cookies, follows its ways."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

PORT = 8765


@dataclass
class Answer:
    """The answer to a request."""

    code: int
    headers: dict[str, str]
    text: str
    path: str


@dataclass
class Visitor:
    """One browser."""

    app: Any
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = f"127.0.0.1:{PORT}"

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page, and follow the ways it gives."""
        return self._followed(self.ask("GET", path, **headers))

    def post(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Answer:
        """Send a form from a page of the application, and follow the way it gives."""
        headers = {"origin": f"http://{self.host}", **headers}
        body = urlencode(form or {}).encode()
        return self._followed(self.ask("POST", path, body, **headers))

    def _followed(self, answer: Answer) -> Answer:
        while "location" in answer.headers:
            answer = self.ask("GET", answer.headers["location"])
        return answer

    def scope(self, method: str, path: str, **headers: str) -> dict[str, Any]:
        """Return one request as an ASGI application gets it."""
        parts = urlsplit(path)
        cookies = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        sent = {"host": self.host, **({"cookie": cookies} if cookies else {}), **headers}
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": parts.path, "raw_path": parts.path.encode(), "query_string": parts.query.encode(),
            "root_path": "", "headers": [(k.encode(), v.encode()) for k, v in sent.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT), "extensions": {},
        }  # fmt: skip

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send one request."""
        scope = self.scope(method, path, **headers)
        messages = asyncio.run(talk(self.app, scope, [{"type": "http.request", "body": body}]))
        start = messages[0]
        heads = {k.decode().lower(): v.decode() for k, v in start["headers"]}
        if "set-cookie" in heads:
            name, _, value = heads["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        text = b"".join(m.get("body", b"") for m in messages[1:]).decode("utf-8", "replace")
        return Answer(start["status"], heads, text, path)

    def open_socket(self, **headers: str) -> list[dict[str, Any]]:
        """Ask for a websocket, and return the answers."""
        scope = {
            "type": "websocket", "path": "/", "raw_path": b"/", "query_string": b"", "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in {"host": self.host, **headers}.items()],
        }  # fmt: skip
        return asyncio.run(talk(self.app, scope, [{"type": "websocket.connect"}]))


async def talk(
    app: Any, scope: dict[str, Any], incoming: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Send messages to an application, and return its answers."""
    left, sent = list(incoming), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
