"""When a bar is shown, and of what: a run of seconds has none, and what will take longer shows it before."""

import pytest

from palimpsest import progress


class Clock:
    """A clock that stops until it is set."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def shown(board: progress.ProgressBoard) -> list[tuple[str, float, float | None]]:
    bars = board._bars
    return [] if bars is None else [(task.description, task.completed, task.total) for task in bars.tasks]


def test_what_takes_more_than_five_seconds_shows_its_bar_at_once(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        report("precondition", 0, 1000, 0)
        clock.now += 0.2
        report("precondition", 10, 1000, 0)
        assert shown(board) == [], "no rate is known yet"
        clock.now += 0.1
        report("precondition", 15, 1000, 0)
        assert shown(board) == [("page precondition", 15, 1000)], "some 20 s are left"


def test_a_short_run_shows_nothing(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        for done in range(0, 1000, 100):
            report("run", done, 1000, 5)
            clock.now += 0.19
        assert shown(board) == []
        clock.now += 0.2
        report("run", 1000, 1000, 5)
        assert shown(board) == [("page run", 1000, 1000)], "it has taken more than two seconds"


def test_filling_and_overwriting_have_rates_of_their_own(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        report("precondition", 0, 10**9, 0)
        clock.now += 1.0
        report("precondition", 10**9, 10**9, 0)
        assert shown(board) == []
        report("precondition", 0, 10**8, 0)
        clock.now += 0.5
        report("precondition", 10**6, 10**8, 0)
        assert shown(board) == [("page precondition", 10**6, 10**8)], "some 50 s, whatever the fill took"
