"""`make audit`: an answer, a vulnerability, and no answer have three exit statuses."""

import io
import json
import urllib.error
import urllib.request

import pytest

import audit

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("vulnerabilities", "status"),
    [([], 0), ([{"id": "OSV-1"}], 1)],
)
def test_answers_have_statuses(
    vulnerabilities: list[dict[str, str]], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        assert timeout > 0
        assert isinstance(request.data, bytes)
        queries = json.loads(request.data)["queries"]
        return io.BytesIO(json.dumps({"results": [{"vulns": vulnerabilities} for _ in queries]}).encode())

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert audit.main() == status


@pytest.mark.parametrize("error", [urllib.error.URLError("no network"), TimeoutError("late"), KeyError("results")])
def test_no_answer_is_no_success(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    assert audit.main() == 2
    assert "unknown" in capsys.readouterr().out.splitlines()[-1]
