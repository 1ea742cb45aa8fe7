"""Environments of Gymnasium: its checker, trajectories, `palimpsest run` as the truth, threads, and wrong inputs."""

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import palimpsest as ps
import palimpsest.gym
from palimpsest.policies import Chosen
from test_drives import _figures

pytestmark = pytest.mark.contract

KEYS: dict[str, Any] = {
    "ssd.channels": 2, "ssd.chips_per_channel": 1, "ssd.planes_per_die": 1, "ssd.blocks_per_plane": 48,
    "part.pages_per_block": 16, "ssd.over_provisioning": "28%", "ftl.gc_start": "2 blocks", "ftl.gc_stop": "3 blocks",
}  # fmt: skip
STREAMS = KEYS | {"ftl.streams": 3}
OPEN = "rw=randrw,rwmixwrite=70,bs=8k,rate_iops=2000,rate_process=poisson,open_loop=1,n=1500"
CLOSED = "rw=randwrite,bs=8k,n=1500,iodepth=4,random_distribution=zipf:1.1"
SIZES = "rw=randwrite,bssplit=8k/90:64k/10,rate_iops=500,rate_process=poisson,open_loop=1,n=1500"
PACE, PLACEMENT = "palimpsest/Pace-v0", "palimpsest/Placement-v0"
SETTINGS: dict[str, dict[str, Any]] = {
    PACE: {"ssd": "mga-8k", "ftl": "page", "overrides": KEYS, "workload": OPEN},
    PLACEMENT: {"ssd": "mga-8k", "ftl": "page", "overrides": STREAMS, "workload": SIZES},
}

Trajectory = list[tuple[bytes, float, bool, bool, str]]


class AtOnce:
    """Action 0 as a policy of a run."""

    def spread(self, _victim: Chosen) -> int:
        return 0


def _make(name: str, **settings: Any) -> palimpsest.gym.DriveEnv:
    made = gymnasium.make(name, **SETTINGS[name] | settings).unwrapped
    assert isinstance(made, palimpsest.gym.DriveEnv)
    return made


def _play(env: palimpsest.gym.DriveEnv, seed: int, choose: Any) -> tuple[Trajectory, dict[str, Any]]:
    """An episode with the actions that `choose` returns for an observation; the steps, and the first info."""
    observation, first = env.reset(seed=seed)
    steps: Trajectory = [(observation.tobytes(), 0.0, False, False, str(first))]
    while not (steps[-1][2] or steps[-1][3]):
        observation, reward, terminated, truncated, info = env.step(choose(observation))
        steps.append((observation.tobytes(), reward, terminated, truncated, str(info)))
    return steps, first


def _drive_threads() -> int:
    return sum(thread.name == "drive" for thread in threading.enumerate())


@pytest.mark.parametrize("name", SETTINGS)
def test_the_checker_of_gymnasium_passes(name: str) -> None:
    env = gymnasium.make(name, **SETTINGS[name] | {"requests": 400})
    check_env(env.unwrapped)
    env.close()
    assert _drive_threads() == 0


@pytest.mark.parametrize("name", SETTINGS)
def test_same_seed_and_actions_give_the_same_bytes(name: str) -> None:
    env, other = _make(name), _make(name)
    last = int(env.action_space.n) - 1  # type: ignore[attr-defined]

    def choose(observation: Any) -> int:
        return int(observation[0] * 1000) % (last + 1)

    ours, _ = _play(env, 5, choose)
    assert len(ours) > 100
    assert ours == _play(other, 5, choose)[0] == _play(env, 5, choose)[0]
    assert ours != _play(env, 6, choose)[0]
    assert ours != _play(env, 5, lambda _: last)[0]
    assert [step[2:4] for step in ours] == [(False, False)] * (len(ours) - 1) + [(False, True)]


@pytest.mark.parametrize("name", SETTINGS)
def test_workers_give_the_trajectories_of_one_process(name: str) -> None:
    def trajectories(mode: str) -> list[bytes]:
        settings = SETTINGS[name] | {"requests": 600}
        # A fork of a process with threads warns from Python 3.12 on.
        context = {"context": "spawn"} if mode == "async" else {}
        envs = gymnasium.make_vec(name, num_envs=2, vectorization_mode=mode, vector_kwargs=context, **settings)
        rng = np.random.default_rng(3)
        observations, _ = envs.reset(seed=7)
        found, ends = [observations.tobytes()], 0
        for _ in range(1300):
            actions = rng.integers(0, envs.single_action_space.n, 2)  # type: ignore[attr-defined]
            observations, rewards, terminated, truncated, _ = envs.step(actions)
            found += [each.tobytes() for each in (observations, rewards, terminated, truncated)]
            ends += truncated.sum()
        envs.close()
        assert ends >= 2, "an episode of each must end, and another begin"
        return found

    assert trajectories("async") == trajectories("sync")


def _run(workload: Any, seed: int, settings: dict[str, Any], **policies: object) -> dict[str, object]:
    # An environment has no run-in.
    run: dict[str, Any] = {"payload": "none", "seed": seed, "series": False, "warmup": "0"} | settings
    keys = run.pop("overrides")
    return _figures(ps.run(workload, ssd=ps.Ssd("mga-8k", ftl="page", **keys), policies=policies, **run))


@pytest.mark.parametrize("workload", [OPEN, CLOSED])
@pytest.mark.parametrize(("action", "policy"), [(4, "paced"), (0, AtOnce())])
def test_a_constant_pace_has_the_figures_of_a_run(workload: str, action: int, policy: Any) -> None:
    # An agent decides nothing while the drive is preconditioned; filling collects nothing.
    filled = {"precondition": "fill:100%,random:1x" if action else "fill:100%", "overrides": KEYS}
    env = _make(PACE, workload=workload, **filled)
    steps, first = _play(env, 3, lambda _: action)
    assert env.result is not None
    ours = _figures(env.result)
    theirs = _run(workload, first["seed"], filled, **{"ftl.gc_pace": policy})
    for figures in (ours, theirs):
        del figures["config"]
    assert {key: value for key, value in theirs.items() if key in ours} == ours
    assert len(steps) > 100
    assert f"'write_p99_ns': {float(env.result.latency_ns['write']['p99'])}" in steps[-1][4]


def test_a_constant_placement_has_the_figures_of_a_run() -> None:
    filled = {"precondition": "fill:100%", "overrides": STREAMS}
    env = _make(PLACEMENT, **filled)
    steps, first = _play(env, 3, lambda observation: int(observation[0] > 7))  # 128 sectors are 64 KiB
    assert env.result is not None
    ours, theirs = _figures(env.result), _run(SIZES, first["seed"], filled, **{"ftl.classifier": "size"})
    one = _run(SIZES, first["seed"], filled, **{"ftl.classifier": "none"})
    for figures in (ours, theirs, one):
        del figures["config"]
    assert {key: value for key, value in theirs.items() if key in ours} == ours
    assert ours["write_amplification"] != one["write_amplification"]
    result: Any = _figures(env.result)
    beyond = (result["write_amplification"] - 1) * result["host"]["bytes_written"]
    assert -4096 * sum(step[1] for step in steps) == pytest.approx(beyond, rel=0.01)


def test_rewards_are_the_latencies_of_the_result() -> None:
    env = _make(PACE)
    env.reset(seed=2)
    latencies, rewards, ended = [env.latencies_ns], 0.0, False
    while not ended:
        _, reward, _, ended, _ = env.step(np.int64(2))
        latencies.append(env.latencies_ns)
        rewards += reward
    everything = np.concatenate(latencies)
    assert env.result is not None
    figures = [env.result.latency_ns[kind] for kind in ("read", "write")]
    assert len(everything) == 1500
    assert everything.max() == max(each["max"] for each in figures)
    assert rewards == pytest.approx(-(everything.sum() - latencies[0].sum()) / 1e6)
    above = palimpsest.gym.Above(100_000, 1_000_000)
    assert above(everything) == -((everything > 100_000).sum() + (everything > 1_000_000).sum()) < 0


def test_a_worn_out_drive_terminates_the_episode() -> None:
    worn = KEYS | {"faults.wear_out": True, "part.endurance": 20}
    env = _make(PACE, overrides=worn, workload=OPEN.replace("1500", "60k"), precondition="fill:100%")
    steps, _ = _play(env, 1, lambda _: 4)
    assert steps[-1][2:4] == (True, False)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(0))
    env.close()


def test_no_thread_outlives_an_environment() -> None:
    for end in ("close", "reset", "drop"):
        env = _make(PACE)
        env.reset(seed=1)
        env.step(np.int64(0))
        assert _drive_threads() == 1
        if end == "reset":
            env.reset(seed=1)
            assert _drive_threads() == 1
        if end != "drop":
            env.close()
        else:
            del env
            gc.collect()
        assert _drive_threads() == 0
    ended = (
        "import gymnasium, palimpsest.gym; env = gymnasium.make('palimpsest/Pace-v0'); env.reset(seed=1); env.step(0)"
    )
    done = subprocess.run([sys.executable, "-c", ended], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": (PACE, {"ssd": "nothing"}),
    "no_such_layer": (PACE, {"ftl": "no_such_layer"}),
    "ftl.nothing": (PACE, {"overrides": {"ftl.nothing": 1}}),
    "ftl.merge_limits": (PACE, {"overrides": KEYS | {"ftl.merge_limits": "1/1/1/1"}}),
    "ftl.gc_pace: the agent decides": (PACE, {"overrides": {"ftl.gc_pace": "paced"}}),
    "host.speedup": (PACE, {"overrides": KEYS | {"host.speedup": 2}}),
    "ftl.gc_pace": (PACE, {"ftl": "mga"}),
    "actions 1: expected": (PACE, {"actions": 1}),
    "requests 0.5: expected": (PACE, {"requests": 0.5}),
    "no decision in 10 requests": (PACE, {"requests": 10}),
    "the next request depends on the drive": (PACE, {"workload": CLOSED + ",thinktime=1ms"}),
    "found a dict": (PACE, {"workload": {}}),
    "there is no preset, no file": (PACE, {"workload": "none.csv"}),
    "precondition": (PACE, {"precondition": "half"}),
    "ftl.streams = 1: writes have one class; expected 3 or more": (PLACEMENT, {"overrides": KEYS}),
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_settings_are_one_line(said: str) -> None:
    name, settings = WRONG[said]
    with pytest.raises(ps.InputError, match=said) as caught:
        _make(name, **settings).reset(seed=1)
    assert "\n" not in str(caught.value)
    assert _drive_threads() == 0


def test_other_render_modes_are_refused() -> None:
    with pytest.raises(ps.InputError, match="render_mode 'human': expected None or 'ansi'"):
        palimpsest.gym.PaceEnv(render_mode="human")


def test_wrong_actions_are_one_line() -> None:
    env = _make(PACE)
    env.reset(seed=1)
    for action in (5, -1, 0.5, None):
        with pytest.raises(ps.InputError, match=r"expected a member of Discrete\(5\)"):
            env.step(action)  # type: ignore[arg-type]
    env.step(np.int64(4))
    env.close()


def test_a_trace_is_a_workload(tmp_path: Path) -> None:
    offsets = np.random.default_rng(1).integers(0, 500, 2000) * 8192
    lines = [f"{7_000_000 + 400_000 * at},write,{offset},8192" for at, offset in enumerate(offsets)]
    (tmp_path / "t.csv").write_text("\n".join(["time_ns,op,offset_bytes,size_bytes", *lines]), encoding="utf-8")
    env = _make(PACE, workload=tmp_path / "t.csv")
    steps, _ = _play(env, 1, lambda _: 0)
    assert len(steps) > 50
    assert steps == _play(env, 1, lambda _: 0)[0]
    assert env.result is not None
    assert env.result.requests["write"] == 2000


def test_a_missing_gymnasium_is_one_line() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import palimpsest.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = "the package gymnasium is not installed; expected `pip install 'palimpsest-ssd[gym]'`"
    assert said in done.stderr.splitlines()[-1]


def test_a_line_of_text_shows_the_question() -> None:
    env = _make(PACE, render_mode="ansi")
    env.reset(seed=1)
    assert str(env.render()).startswith("Chosen(plane=")
    env.close()
