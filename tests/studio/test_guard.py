"""The guard of the studio: who may ask, and what becomes of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from margrave.studio.guard import Guard
from margrave.studio.project import Project
from margrave.studio.server import application
from tests.support.web import PORT, Visitor


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    (tmp_path / "studio").mkdir()
    return application(Project(tmp_path / "studio", tmp_path), PORT, lambda: None)


@pytest.fixture
def inside(guard: Guard) -> Visitor:
    visitor = Visitor(guard)
    assert visitor.get(guard.address.partition(str(PORT))[2]).code == 200
    return visitor


def test_the_address_lets_one_browser_in(guard: Guard) -> None:
    path = guard.address.partition(str(PORT))[2]
    first, second = Visitor(guard), Visitor(guard)
    answer = first.ask("GET", path)
    assert (answer.code, answer.headers["location"]) == (303, "/")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    assert first.get("/").code == 200
    assert second.ask("GET", path).code == 403, "the address works once"
    assert "set-cookie" not in second.ask("GET", path).headers
    assert first.ask("GET", path).code == 303, "in the browser that it let in it leads on"


def test_a_used_token_is_no_token(guard: Guard) -> None:
    Visitor(guard).get(guard.address.partition(str(PORT))[2])
    for query in ("", "?token=", "?token"):
        assert Visitor(guard).ask("GET", f"/{query}").code == 403


@pytest.mark.parametrize(
    "path", ["/", "/table", "/ledger", "/studio.css", "/?token=", "/?token=wrong"]
)
def test_without_the_token_nothing_is_given(guard: Guard, path: str) -> None:
    for cookies in ({}, {guard.cookie: ""}, {guard.cookie: "wrong"}, {"other": "x"}):
        answer = Visitor(guard, cookies).ask("GET", path)
        assert answer.code == 403
        assert "set-cookie" not in answer.headers
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1.evil.example:{PORT}",
        "",
    ],
)
def test_another_host_is_refused(inside: Visitor, host: str) -> None:
    inside.host = host
    assert inside.ask("GET", "/table").code == 403


def test_this_machine_has_two_names(inside: Visitor) -> None:
    inside.host = f"localhost:{PORT}"
    assert inside.ask("GET", "/table").code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:80", None],
)
def test_a_form_of_another_origin_is_refused(inside: Visitor, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert inside.ask("POST", "/table", b"table=x", **headers).code == 403
    assert inside.get("/").path.endswith("/table"), "and nothing was taken"


def test_a_websocket_is_closed(inside: Visitor) -> None:
    cookie = "; ".join(f"{k}={v}" for k, v in inside.cookies.items())
    for headers in ({}, {"cookie": cookie, "origin": f"http://{inside.host}"}):
        assert inside.open_socket(**headers) == [{"type": "websocket.close", "code": 1008}]


def test_other_methods_and_large_forms_are_refused(inside: Visitor) -> None:
    assert inside.ask("DELETE", "/table").code == 403
    large = b"table=" + b"x" * Guard.max_body_bytes
    assert inside.ask("POST", "/table", large, origin=f"http://{inside.host}").code == 413
    assert inside.ask("POST", "/table", b"\xff", origin=f"http://{inside.host}").code == 400


def test_every_page_has_its_headers(inside: Visitor) -> None:
    for path in ("/table", "/ledger", "/nowhere", "/static/studio.js"):
        headers = inside.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
    assert inside.get("/nowhere").code == 404


def test_pages_need_no_inline_script_or_style(inside: Visitor) -> None:
    templates = Path(__file__).parents[2] / "src/margrave/studio/templates"
    for page in templates.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for word in (
            "|safe",
            "| safe",
            "<style",
            " style=",
            "javascript:",
            " onclick",
            "hx-on",
            "http://",
            "https://",
        ):
            assert word not in text, (page.name, word)


def test_an_error_shows_no_text_of_it(
    inside: Visitor,
    guard: Guard,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("Canary-7719")

    monkeypatch.setattr(Project, "datasets", fail)
    answer = inside.get("/ledger")
    seen = capsys.readouterr()
    assert (answer.code, answer.text) == (500, Guard.failure_text)
    assert "Canary" not in answer.text + seen.err + seen.out
    assert "ValueError" in seen.err
    assert "test_guard.py" in seen.err


def test_a_listing_stays_below_the_folder(inside: Visitor, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/inner.csv").write_text("a\n1\n")
    assert "inner.csv" in inside.get("/table?at=sub").text
    for at in ("..", "/etc", "sub/../..", "%00", "nowhere"):
        assert "sub/" in inside.get(f"/table?at={at}").text
