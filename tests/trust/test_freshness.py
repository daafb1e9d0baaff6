"""The long proofs name the commit that they are of, and count what has changed since. Tested in small repositories."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow
from margrave.testing.loss import BUDGETS, ratios
from tests.mechanisms.test_replay import cases_of, drawn
from tests.support import freshness, trust
from tests.support.audit import audit_noise, quick
from tests.support.conformance import hurried, remembering
from tests.support.freshness import Commit, commit_of, lines_since, uncommitted

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

GATE, REPORT = "src/margrave/privacy/gate.py", "src/margrave/report/page.py"


def git(root: Path, *arguments: str) -> str:
    who = [
        "-c",
        "user.name=somebody",
        "-c",
        "user.email=somebody@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    return subprocess.run(
        ["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True
    ).stdout


def write(root: Path, name: str, text: str, *, commit: bool = True) -> str:
    """Write a file, commit it, and return the commit's full name."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    if commit:
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", name)
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one file of the gate, in which the one part takes no time."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path, GATE, "one\ntwo\n")
    write(tmp_path, "docs/index.md", "words\n")
    monkeypatch.setattr(trust, "ROOT", tmp_path)
    monkeypatch.setattr(trust, "DATA", tmp_path / trust.WRITTEN[0])
    monkeypatch.setattr(trust, "PAGE", tmp_path / trust.WRITTEN[1])
    part = trust.Part("no loss", 1.0, lambda _: trust.Found("none", True, []))
    monkeypatch.setattr(trust, "PARTS", {"replay": part, "canaries": part})
    return tmp_path


def kept() -> bool:
    return trust.DATA.exists() or trust.PAGE.exists()


def test_a_clean_commit_is_written_in_full(repository: Path) -> None:
    assert trust.main(["--only", "replay"]) == 0
    commit = git(repository, "rev-parse", "HEAD").strip()
    result = trust.known()["replay"]
    assert result.version.endswith(f"({commit})")
    assert (result.changed, result.as_of, result.stale) == (0, commit, False)
    assert f"As of commit {commit}." in trust.PAGE.read_text(encoding="utf-8")
    assert trust.main(["--only", "canaries"]) == 0, (
        "what the first run wrote does not count as a change"
    )


@pytest.mark.parametrize("name", [GATE, "untracked.py", "docs/index.md"])
def test_a_dirty_tree_is_refused(
    repository: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, name, "changed\n", commit=False)
    assert trust.main(["--only", "replay"]) == 2
    assert f"The working tree has uncommitted changes ({name})" in capsys.readouterr().err
    assert not kept()
    assert trust.main(["--only", "replay", "--allow-dirty"]) == 0
    assert "replay: none" in capsys.readouterr().out
    assert not kept()


def test_without_git_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trust, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert trust.main(["--only", "toy"]) == 2
    assert "is not a git repository" in capsys.readouterr().err
    assert freshness.head(tmp_path) == freshness.UNKNOWN
    assert trust.version().endswith("(no commit known+)")


def test_source_that_changes_during_a_run_is_noticed(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(_: trust.Ask) -> trust.Found:
        write(repository, GATE, "other\n", commit=False)
        return trust.Found("none", True, [])

    monkeypatch.setitem(trust.PARTS, "replay", trust.Part("no loss", 1.0, edit))
    assert trust.main(["--only", "replay"]) == 2
    assert "The source changed while replay ran" in capsys.readouterr().err
    assert not kept()


def test_lines_changed_since_make_a_part_stale(repository: Path) -> None:
    trust.main(["--only", "replay", "canaries"])
    write(repository, "docs/index.md", "other words\n")
    trust.main(["--page"])
    assert [r.changed for r in trust.known().values()] == [0, 0]
    write(repository, REPORT, "a page\n")  # the canaries look at reports, the replay does not
    trust.main(["--page"])
    assert {name: r.stale for name, r in trust.known().items()} == {
        "replay": False,
        "canaries": True,
    }
    write(repository, GATE, "one\nthree\n")
    trust.main(["--page"])
    found = trust.known()
    assert {name: r.changed for name, r in found.items()} == {"replay": 2, "canaries": 3}
    assert {r.as_of for r in found.values()} == {git(repository, "rev-parse", "HEAD").strip()}
    assert "| 2: **stale** |" in trust.PAGE.read_text(encoding="utf-8")
    trust.main(["--only", "replay"])
    assert {name: r.stale for name, r in trust.known().items()} == {
        "replay": False,
        "canaries": True,
    }


def test_the_page_is_written_from_a_dirty_tree_as_of_its_commit(repository: Path) -> None:
    trust.main(["--only", "replay"])
    write(repository, GATE, "edited\n", commit=False)
    assert trust.main(["--page"]) == 0
    assert trust.known()["replay"].changed == 0


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.1.0 (c2a5e72)", "not known: **stale**"),  # a commit that this repository lacks
        ("0.1.0 (7886e33+)", "not known (run on edited files): **stale**"),
        ("0.1.0 (no commit known)", "not known: **stale**"),
        ("0.1.0", "not known: **stale**"),
    ],
)
def test_what_is_not_known_is_stale(repository: Path, version: str, told: str) -> None:
    result = trust.Result("replay", "bar", "none", True, "command", 1.0, "2020-01-01", version)
    trust.kept({"replay": result})
    assert trust.known()["replay"].stale
    assert told in trust.PAGE.read_text(encoding="utf-8")


def test_short_names_of_commits_are_found(repository: Path) -> None:
    commit = git(repository, "rev-parse", "--short=7", "HEAD").strip()
    write(repository, GATE, "one\ntwo\nthree\n")
    assert commit_of(f"0.1.0 ({commit})") == Commit(commit, False)
    assert lines_since(repository, commit, [GATE]) == 1
    assert lines_since(repository, commit, ["src/margrave/data"]) == 0


def test_docstrings_and_comments_do_not_count(repository: Path) -> None:
    code = '"""Words."""\n\nA = """\n# text\n"""\n# why\nB = 1  # what\n'
    commit = write(repository, GATE, code)
    write(
        repository, GATE, code.replace("Words.", "Other words,\n\nmany.").replace("# why", "# how")
    )
    assert lines_since(repository, commit, [GATE]) == 0
    write(repository, GATE, code.replace("# text", "# other").replace("B = 1", "B = 2"))
    assert lines_since(repository, commit, [GATE]) == 4, "a text that the code holds is code"
    write(repository, GATE, "not a (program\n")
    assert lines_since(repository, commit, [GATE]) == 8, "all lines of what cannot be read"


def test_rows_that_were_run_apart_count_from_the_oldest(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD").strip()
    second = write(repository, GATE, "one\ntwo\nthree\n")
    rows = [["loader", "version"], ["csv", f"0.1.0 ({first})"], ["release", f"0.1.0 ({second})"]]
    result = trust.Result(
        "fuzz", "bar", "none", True, "command", 1.0, "2020-01-01", f"0.1.0 ({second})", rows
    )
    assert trust.counted(result).changed == 1
    edited = trust.replace(result, details=[*rows, ["schema", f"0.1.0 ({second}+)"]])
    assert trust.counted(edited).changed is None


def test_files_of_bytes_and_renames_count(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD").strip()
    (repository / GATE).rename(repository / "src/margrave/privacy/door.py")
    (repository / "src/margrave/privacy/bytes").write_bytes(bytes(range(256)))
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "moved")
    assert lines_since(repository, commit, ["src/margrave/privacy"]) == 5


def test_every_part_says_which_source_it_is_about() -> None:
    assert set(freshness.RELEVANT) == set(trust.PARTS)
    for part, paths in freshness.RELEVANT.items():
        on_codes = part in ("replay", "audit", "samplers")
        assert set(paths) >= set(freshness.MEASURING if on_codes else freshness.SOURCE)
        assert [p for p in paths if not (trust.ROOT / p).exists()] == []


@pytest.mark.parametrize("name", ["independent", "mst"])
def test_replay_and_audit_call_what_they_say_they_are_about(name: str) -> None:
    """But for making a schema and a release, and for checking arguments."""
    package, called = trust.ROOT / "src" / "margrave", set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            called.add(frame.f_code.co_filename)

    def run() -> None:
        ratios_of(name)
        audit_noise(partial(quick, name), 5)

    run()  # so that nothing is imported below
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    own = {Path(f).relative_to(package) for f in called if f.startswith(str(package))}
    about = [Path(p).relative_to("src/margrave") for p in freshness.MEASURING]
    besides = [Path(p) for p in ("schema", "release", "testing")]
    outside = [p for p in own if not any(p == a or a in p.parents for a in [*about, *besides])]
    assert own
    assert [str(p) for p in outside if not p.name.startswith("_")] == []


def ratios_of(name: str) -> None:
    (case,) = cases_of(name, AddRemoveRow())[:1]
    rng = np.random.default_rng(1)
    mechanism, one, others = drawn(case, AddRemoveRow(), rng, 2)
    ratios(remembering(hurried(mechanism)), AddRemoveRow(), [(one, others)], BUDGETS[0], seed=1)


def test_a_planted_blindness_would_be_seen(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree taken for clean whatever is in it: the results are kept, which the tests above forbid."""
    write(repository, GATE, "edited\n", commit=False)
    assert uncommitted(repository) == [GATE]
    monkeypatch.setattr(trust, "uncommitted", lambda *_: [])
    assert trust.main(["--only", "replay"]) == 0
    assert kept()
