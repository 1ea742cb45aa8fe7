"""Environments of Gymnasium: an agent decides where a simulated drive asks its policy.

>>> import gymnasium
>>> import palimpsest.gym
>>> env = gymnasium.make("palimpsest/Pace-v0", ssd="mga-8k", ftl="page")

In `Pace-v0` the agent spreads the moves of each victim (`ftl.gc_pace`); in `Placement-v0` it chooses the write stream
of each write (`ftl.classifier`). A step is a decision: the agent observes the drive at the moment of the question. An
episode is a workload on a preconditioned drive, which runs in a thread. Either the drive or the agent waits for the
other at any time, so the same seed and actions give the same trajectory. `palimpsest help learning`
describes spaces, rewards and figures.

Ignored: directives of requests (force unit access, placement handles, owners), power cuts, several agents on a drive.
"""

import contextlib
import threading
import tomllib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from . import _core, traces
from .distribution import install
from .drives import Drive
from .errors import InputError
from .policies import Chosen, Requests
from .result import Result

try:
    import gymnasium
except ModuleNotFoundError as error:
    what = f"palimpsest.gym: the package gymnasium is not installed; expected {install('gym')} before it"
    raise ModuleNotFoundError(what, name="gymnasium") from error

Observation: TypeAlias = npt.NDArray[np.float32]
Latencies: TypeAlias = npt.NDArray[np.int64]
Reward: TypeAlias = Callable[[Latencies], float]

SMALL: Mapping[str, object] = {
    "ssd.channels": 2, "ssd.blocks_per_plane": 40, "part.pages_per_block": 64, "ssd.over_provisioning": "12%",
}  # fmt: skip
"""Keys of the drive without `ssd`: two dies of `tlc-32g` with small blocks, 320 MiB of flash, and the layer `page`."""
_MIXED = "bs=16k,random_distribution=zipf:1.1,rate_process=poisson,open_loop=1,n=10k"
PACE_WORKLOAD = f"rw=randrw,rwmixread=50,rate_iops=4000,{_MIXED}"
PLACEMENT_WORKLOAD = f"rw=randwrite,rate_iops=2000,{_MIXED}"

_WRITE = 1
_QUANTILES = ("mean", "p50", "p99", "p999", "max")
_NEVER = 40.0
_here = threading.local()


@dataclass(frozen=True)
class Above:
    """A reward: minus the number of requests slower than each of the limits, in ns.

    >>> gymnasium.make("palimpsest/Pace-v0", reward=Above(1_000_000, 5_000_000))
    """

    limits_ns: tuple[int, ...]

    def __init__(self, *limits_ns: int) -> None:
        object.__setattr__(self, "limits_ns", limits_ns)

    def __call__(self, latencies: Latencies) -> float:
        """The reward for these latencies, in ns."""
        return -float(sum((latencies > limit).sum() for limit in self.limits_ns))


def total_latency(latencies: Latencies) -> float:
    """A reward: minus the sum of the latencies, in ms."""
    return -float(latencies.sum()) / 1e6


class _Stopped(Exception):
    """The agent ended the episode before the last request."""


class _Asker:
    """The policy of all drives of environments, which asks the agent of the drive's thread.

    While the drive is preconditioned, moves spread as in the built-in pace, and writes have the class 0.
    """

    def __deepcopy__(self, _memo: object) -> "_Asker":
        return self

    def spread(self, victim: Chosen) -> int:
        """The policy of `ftl.gc_pace`."""
        episode = getattr(_here, "episode", None)
        return victim.most if episode is None else cast("_Episode", episode).ask(victim)

    def classify(self, requests: Requests) -> npt.NDArray[np.int64]:
        """The policy of `ftl.classifier`, for a request at a time."""
        classes = np.zeros(len(requests.op), np.int64)
        episode = getattr(_here, "episode", None)
        if episode is not None and requests.op[0] == _WRITE:
            classes[:] = cast("_Episode", episode).ask(requests)
        return classes


_ASKER = _Asker()


class _Episode:
    """A drive that serves a workload in a thread, and waits while the agent decides."""

    def __init__(self, drive: Drive, requests: traces.Requests) -> None:
        self.moments = drive.watch()
        self.question: Chosen | Requests | None = None
        self.outcome: Result | BaseException | None = None
        self._answer = 0
        self._stopped = False
        self._asks, self._answers = threading.Lock(), threading.Lock()
        self._asks.acquire()
        self._answers.acquire()
        self._thread = threading.Thread(target=self._serve, args=(drive, requests), name="drive", daemon=True)

    def _serve(self, drive: Drive, requests: traces.Requests) -> None:
        _here.episode = self
        kinds, times, offsets, sizes, depth = requests
        try:
            if depth is None:
                drive.submit_many(kinds, offsets, sizes, times - times[:1])  # the first request starts the clock
            else:
                drive.play(kinds, offsets, sizes, depth)
            drive.wait()
            self.outcome = drive.finish()
        except BaseException as error:  # raised in the thread of the agent
            self.outcome = error
        self.question = None
        self._asks.release()

    def ask(self, question: Chosen | Requests) -> int:
        """Waits for the agent's answer, in the thread of the drive."""
        self.question = question
        if not self._stopped:
            self._asks.release()
            self._answers.acquire()
        if self._stopped:
            raise _Stopped
        return self._answer

    def start(self) -> None:
        """Runs the drive up to the first question."""
        self._thread.start()
        self._asks.acquire()

    def answer(self, answer: int) -> None:
        """Answers the question and runs the drive up to the next."""
        self._answer = answer
        self._answers.release()
        self._asks.acquire()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped = True
        while self._thread.is_alive():
            if self._answers.locked():
                with contextlib.suppress(RuntimeError):  # another thread has released the lock
                    self._answers.release()
            self._thread.join(0.01)


def _stop(episodes: list[_Episode]) -> None:
    while episodes:
        episodes.pop().stop()


def _log2(number: float) -> float:
    return float(np.log2(1 + number))


def _log10(number: float) -> float:
    return float(np.log10(1 + number))


class DriveEnv(gymnasium.Env[Observation, np.int64]):
    """A workload on a simulated drive; `Pace` and `Placement` add decisions, observations and rewards.

    Args:
        ssd: preset (`palimpsest list ssds`) or path of a TOML file; None for a small drive, `SMALL`.
        ftl: translation layer; None for the layer of the preset.
        workload: preset, specification in fio's language, or path of a trace or job file, as for `palimpsest.run`.
        requests: number of requests; None for the whole workload.
        precondition: as `run --precondition`, served without questions to the agent.
        overrides: configuration keys with values.
        render_mode: None, or `"ansi"` for a line of text.

    Raises:
        InputError: the drive, layer, key or value is unknown.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  # as Gymnasium declares it
    key: ClassVar[str]
    small: ClassVar[Mapping[str, object]] = SMALL

    def __init__(
        self, ssd: str | Path | None, ftl: str | None, workload: object, requests: float | None,
        precondition: str, overrides: Mapping[str, object] | None, render_mode: str | None,
    ) -> None:  # fmt: skip
        overrides = dict(overrides or {})
        if ssd is None:
            ssd, ftl, overrides = "tlc-32g", ftl or "page", {**self.small, **overrides}
        if render_mode not in (None, "ansi"):
            raise InputError(f"render_mode {render_mode!r}: expected None or 'ansi'")
        if not isinstance(workload, str | Path):
            kind = type(workload).__name__
            raise InputError(f"workload: expected a preset, a specification or the path of a file, found a {kind}")
        if requests is not None and (requests != int(requests) or requests < 1):
            raise InputError(f"requests {requests!r}: expected a whole number from 1, or None")
        if self.key in overrides:
            raise InputError(f"{self.key}: the agent decides this; expected other keys")
        self.render_mode = render_mode
        self.result: Result | None = None
        """The result of the last complete episode."""
        self.latencies_ns: Latencies = np.empty(0, np.int64)
        """Latencies of the requests that completed in the last step, in order of completion."""
        self._ssd, self._ftl, self._precondition = str(ssd), ftl, precondition
        self._overrides: dict[str, Any] = overrides
        self._workload, self._requests = str(workload), None if requests is None else int(requests)
        keys = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in overrides.items()]
        self._config, self._bytes = _core.show(self._ssd, ftl, keys), _core.drive_bytes(self._ssd, ftl, keys)
        self._held: list[_Episode] = []
        self._end = weakref.finalize(self, _stop, self._held)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode with a new drive. `info["seed"]` is the seed of the drive and of a generated workload."""
        super().reset(seed=seed, options=options)
        _stop(self._held)
        chosen = int(self.np_random.integers(2**31))
        asked = traces.TraceOptions(workload=self._workload, requests=self._requests, seed=chosen)
        requests = traces.requests(asked, self._bytes)
        drive = Drive(
            self._ssd, self._ftl, precondition=self._precondition, payload="none", seed=chosen,
            closed_loop=requests.depth is not None, policies={self.key: _ASKER}, **self._overrides,
        )  # fmt: skip
        self._arrivals = np.zeros(len(requests.kind), np.int64)
        self._in_flight, self._programmed = 0, 0
        self._recent = np.zeros(3, np.int64)
        self._begin(requests, drive)
        self._episode = _Episode(drive, requests)
        self._held.append(self._episode)
        self._episode.start()
        self._take()
        if self._episode.question is None:
            self._finish()
            raise InputError(f"workload {self._workload}: no decision in {len(requests.kind)} requests; expected more")
        return self._observe(), {"seed": chosen, **self._info()}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decides, and runs the drive up to the next decision or the end of the workload.

        `truncated` is true at the end of the workload, `terminated` if the drive is worn out. Raises InputError for an
        action outside of the space; errors of the drive as `palimpsest.run`.
        """
        if not self._held or self._episode.question is None:
            raise gymnasium.error.ResetNeeded("the episode has ended; expected reset()")
        if not self.action_space.contains(action):
            raise InputError(f"action {action!r}: expected a member of {self.action_space}")
        self._episode.answer(self._act(int(action)))
        self._take()
        ended = self._episode.question is None
        reward, info = self._reward(), self._info()
        if ended:
            self.result = self._finish()
            info |= _figures(self.result)
        worn_out = ended and self.result is not None and bool(self.result["lifetime"]["worn_out"])
        return self._observe(), reward, worn_out, ended and not worn_out, info

    def _finish(self) -> Result:
        """The result of the episode. Raises the error of the drive."""
        outcome = self._episode.outcome
        _stop(self._held)
        if isinstance(outcome, Result):
            return outcome
        raise cast(BaseException, outcome)

    def _take(self) -> None:
        """Updates the load and the latencies."""
        rows = self._episode.moments.take()
        completed = rows[:, 2] == 1
        arrived, done = rows[~completed], rows[completed]
        self._arrivals[arrived[:, 0]] = arrived[:, 1]
        self.latencies_ns = done[:, 1] - self._arrivals[done[:, 0]]
        self._in_flight += len(arrived) - len(done)
        self._recent = np.concatenate([self._recent, arrived[-3:, 1]])[-3:]
        self._new_bytes = int(rows[-1, 3]) - self._programmed if len(rows) else 0
        self._programmed += self._new_bytes

    def _gaps(self) -> list[float]:
        """The last two times between arrivals, as log10 of ns."""
        return [_log10(self._recent[2] - self._recent[1]), _log10(self._recent[1] - self._recent[0])]

    def _info(self) -> dict[str, Any]:
        latencies = self.latencies_ns
        return {"requests": len(latencies), "latency_ns": int(latencies.sum()), "programmed_bytes": self._new_bytes}

    def render(self) -> str | None:
        """The present question as a line of text, in the mode `ansi`."""
        return str(self._episode.question) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode and its thread."""
        _stop(self._held)

    def _begin(self, requests: traces.Requests, drive: Drive) -> None:
        """Prepares an episode."""
        raise NotImplementedError

    def _act(self, action: int) -> int:
        """The answer of the policy for an action."""
        raise NotImplementedError

    def _observe(self) -> Observation:
        raise NotImplementedError

    def _reward(self) -> float:
        raise NotImplementedError


def _figures(result: Result) -> dict[str, float]:
    """The figures of an episode: `write_p99_ns` and others; not a number if the episode has none."""
    latencies = result["latency_ns"]
    found = {"write_amplification": result["write_amplification"]}
    for kind in ("read", "write"):
        found |= {f"{kind}_{name}_ns": (latencies.get(kind) or {}).get(name) for name in _QUANTILES}
    return {name: float("nan") if value is None else float(value) for name, value in found.items()}


class PaceEnv(DriveEnv):
    """Spreads the moves of a victim over host writes (`ftl.gc_pace`); a step is a victim.

    Action `a` of `actions` spreads the moves over `a / (actions - 1)` of the host pages of the built-in pace: 0 moves
    all at once, the last one is the pace `paced`. Other arguments are those of `DriveEnv`.

    Args:
        actions: number of actions, at least 2.
        reward: the reward for the latencies, in ns, of the requests that completed since the last decision.
    """

    key = "ftl.gc_pace"
    _shown: Chosen

    def __init__(
        self, ssd: str | Path | None = None, ftl: str | None = None, *, workload: str | Path = PACE_WORKLOAD,
        requests: float | None = None, precondition: str = "fill:100%,random:1x",
        overrides: Mapping[str, object] | None = None, actions: int = 5, reward: Reward = total_latency,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ssd, ftl, workload, requests, precondition, overrides, render_mode)
        if isinstance(actions, bool) or not isinstance(actions, int) or actions < 2:
            raise InputError(f"actions {actions!r}: expected a whole number from 2")
        self.action_space = gymnasium.spaces.Discrete(actions)
        self._last_action, self._latency_reward = actions - 1, reward
        high = np.array([64, 1, 64, 32, 32, 20, 20, 1], np.float32)
        self.observation_space = gymnasium.spaces.Box(np.zeros_like(high), high)

    def _begin(self, _requests: traces.Requests, _drive: Drive) -> None:
        self._last = self._last_action

    def _act(self, action: int) -> int:
        self._last = action
        return self._victim().most * action // self._last_action

    def _victim(self) -> Chosen:
        """The victim of the question; at the end of the episode the last one."""
        if isinstance(self._episode.question, Chosen):
            self._shown = self._episode.question
        return self._shown

    def _observe(self) -> Observation:
        victim = self._victim()
        of_block = [victim.free / victim.pages, victim.moves / victim.pages, victim.most / victim.pages]
        load = [_log2(victim.load), _log2(self._in_flight)]
        found = np.array([*of_block, *load, *self._gaps(), self._last / self._last_action], np.float32)
        return np.minimum(found, self.observation_space.high)  # type: ignore[attr-defined]

    def _info(self) -> dict[str, Any]:
        return super()._info() | self._victim()._asdict()

    def _reward(self) -> float:
        return float(self._latency_reward(self.latencies_ns))


class PlacementEnv(DriveEnv):
    """Chooses the write stream of a write (`ftl.classifier`); a step is a write.

    The actions are the classes of the layer: `ftl.streams` less 1, which must be at least 2. Arguments are those of
    `DriveEnv`.
    """

    key = "ftl.classifier"
    small: ClassVar[Mapping[str, object]] = {**SMALL, "ftl.streams": 3}

    def __init__(
        self, ssd: str | Path | None = None, ftl: str | None = None, *, workload: str | Path = PLACEMENT_WORKLOAD,
        requests: float | None = None, precondition: str = "fill:100%",
        overrides: Mapping[str, object] | None = None, render_mode: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(ssd, ftl, workload, requests, precondition, overrides, render_mode)
        streams = tomllib.loads(self._config)["ftl"].get("streams", 0)
        if streams < 3:
            raise InputError(f"ftl.streams = {streams}: writes have one class; expected 3 or more streams")
        self.action_space = gymnasium.spaces.Discrete(streams - 1)
        high = np.array([32, 1, 20, 20, _NEVER, 32, 1], np.float32)
        self.observation_space = gymnasium.spaces.Box(np.zeros_like(high), high)

    def _begin(self, requests: traces.Requests, drive: Drive) -> None:
        writes = np.flatnonzero(requests.kind == "write")
        self._sizes, offsets = requests.size[writes], requests.offset[writes]
        _, self._unit = np.unique(offsets // drive.unit_bytes, return_inverse=True)
        self._share = offsets / drive.size
        # The writes of a unit are neighbours in this order.
        order = np.argsort(self._unit, kind="stable")
        first = np.r_[True, np.diff(self._unit[order]) != 0]
        place = np.arange(len(order))
        self._earlier = np.empty(len(order), np.int64)
        self._earlier[order] = place - np.maximum.accumulate(np.where(first, place, 0))
        self._since = np.full(len(order), -1)
        self._since[order[1:]] = np.where(first[1:], -1, np.diff(order))
        self._class = np.zeros(self._unit.max(initial=0) + 1, np.int64)
        self._write, self._written = 0, 0

    def _act(self, action: int) -> int:
        self._class[self._unit[self._write]] = action
        self._written = int(self._sizes[self._write])
        self._write = min(self._write + 1, len(self._sizes) - 1)
        return action

    def _observe(self) -> Observation:
        write, last = self._write, int(self.action_space.n) - 1  # type: ignore[attr-defined]
        since = self._since[write]
        found = np.array([
            _log2(self._sizes[write] / 512), self._share[write], *self._gaps(),
            _NEVER if since < 0 else _log2(since), _log2(self._earlier[write]), self._class[self._unit[write]] / last,
        ], np.float32)  # fmt: skip
        return np.minimum(found, self.observation_space.high)  # type: ignore[attr-defined]

    def _reward(self) -> float:
        return -(self._new_bytes - self._written) / 4096


gymnasium.register("palimpsest/Pace-v0", f"{__name__}:PaceEnv")
gymnasium.register("palimpsest/Placement-v0", f"{__name__}:PlacementEnv")
