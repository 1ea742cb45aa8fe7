"""Classifiers in Python: equal to built-in ones, with requests ahead of time, with state, and with clear errors."""

import textwrap
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import palimpsest as ps
from conftest import Command
from palimpsest.policies import Requests
from test_policies import SMALL, _figures

STREAMS: dict[str, Any] = SMALL | {"ssd.over_provisioning": "150%", "ftl.streams": 3, "ftl.moved": "class"}
# Keys with which a layer has classes.
LAYERS: dict[str, dict[str, Any]] = {
    "page": {}, "dftl": {}, "subpage": {}, "sector-log": {}, "page-fgm": {}, "dma-fgm": {}, "hotcold": {},
    "womv": {"ssd.part": "qlc-16k"}, "spftl": {"ssd.part": "vnand-16k"}, "llh": {"ssd.part": "mlc-8k"},
    "fdp": {"fdp.handles": 3}, "fdp-dftl": {"fdp.handles": 3}, "fdp-subpage": {"fdp.handles": 3},
}  # fmt: skip
LOAD = "rw=randrw,rwmixread=30,bssplit=8k/60:128k/40,n=6000,iodepth=4,random_distribution=zipf:1.1"


class Size:
    """As the built-in classifier."""

    def classify(self, requests: Requests) -> Any:
        return requests.size >= 65536


class Address:
    """As the built-in classifier with `ftl.hot_below = 2MiB`."""

    def classify(self, requests: Requests) -> Any:
        return np.where(requests.offset < 2 << 20, 0, 1)


class Owner:
    """As the built-in classifier."""

    def __init__(self) -> None:
        self.streams = {0: 0}

    def classify(self, requests: Requests) -> Any:
        of_writes = requests.owner[requests.op == 1]
        for owner in of_writes:
            self.streams.setdefault(int(owner), len(self.streams))
        return np.array([min(self.streams.get(int(each), 0), requests.classes - 1) for each in requests.owner])


class InTurn:
    """Classifies by the number of earlier requests, so that a lost state shows in the figures."""

    def __init__(self) -> None:
        self.requests = 0

    def classify(self, requests: Requests) -> Any:
        numbers = self.requests + np.arange(len(requests.op))
        self.requests += len(numbers)
        return numbers // 3 % requests.classes


class Recorded:
    """Records all calls of all drives."""

    calls: ClassVar[list[Requests]] = []

    def classify(self, requests: Requests) -> Any:
        self.calls.append(requests)
        return np.zeros(len(requests.op), np.uint8)


def _drive(layer: str, **keys: Any) -> ps.Ssd:
    own = layer.startswith(("fdp", "llh", "hotcold"))
    shared = {key: value for key, value in STREAMS.items() if not own or not key.startswith("ftl.")}
    return ps.Ssd("mga-8k", ftl=layer, **(shared | LAYERS[layer] | keys))


def _run(layer: str, workload: Any = LOAD, **settings: Any) -> ps.Result:
    settings = {"precondition": "fill:100%,random:1x", "payload": "tag"} | settings
    return ps.run(workload, ssd=_drive(layer, **settings.pop("keys", {})), **settings)


@pytest.mark.contract
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_classifier_equals_the_built_in_one(layer: str, fidelity: str) -> None:
    address = {"ftl.classifier": "address", "ftl.hot_below": "2MiB"}
    for keys, policy in (({"ftl.classifier": "size"}, Size), (address, Address())):
        built_in = _run(layer, keys=keys, fidelity=fidelity)
        ours = _run(layer, policies={"ftl.classifier": policy}, fidelity=fidelity)
        assert _figures(ours) == _figures(built_in)
    assert _figures(_run(layer, fidelity=fidelity)) != _figures(built_in), "classes have an effect"


@pytest.mark.contract
def test_every_layer_with_the_key_has_classifiers() -> None:
    def reads(layer: str) -> bool:
        try:
            unread = ps._core.unread_keys("default", layer, ["ftl.classifier=size", "ftl.streams=3"])
        except ps.InputError as error:
            return "ftl.classifier" not in str(error)
        return "ftl.classifier" not in [key for key, *_ in unread]

    file_systems = {name for name, _ in ps._core.list_registry("ftls") if name.startswith("fs-")} | {"codesign"}
    listing = {name for name, _ in ps._core.list_registry("ftls") if reads(name)} - file_systems
    assert listing == set(LAYERS)


@pytest.mark.contract
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_jobs_are_classified_with_their_owner(fidelity: str, tmp_path: Path) -> None:
    jobs = tmp_path / "load.fio"
    jobs.write_text("[global]\nrw=randwrite\nbs=8k\nnumber_ios=3000\nrate_iops=20000\n[one]\n[two]\n", encoding="utf-8")
    built_in = _run("page", str(jobs), keys={"ftl.classifier": "owner"}, fidelity=fidelity)
    ours = _run("page", str(jobs), policies={"ftl.classifier": Owner}, fidelity=fidelity)
    assert len(built_in["jobs"]) == 2
    assert _figures(ours) == _figures(built_in)


@pytest.mark.contract
def test_requests_come_in_batches_ahead_of_time(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"{100 * each},{'RWT'[each % 3]},{8192 * (each % 90)},8192\n" for each in range(10_000)]
    trace.write_text("".join(rows), encoding="utf-8")
    Recorded.calls.clear()
    played = {"precondition": "none", "requests": 9000, "columns": "time=1:us,op=2,offset=3,size=4"}
    _run("page", str(trace), policies={"ftl.classifier": Recorded()}, **played)
    assert [len(call.op) for call in Recorded.calls] == [4096, 4096, 808]
    assert {call.classes for call in Recorded.calls} == {2}
    first = Recorded.calls[0]
    assert first.op[:6].tolist() == [0, 1, 2, 0, 1, 2]
    assert first.offset[:3].tolist() == [0, 8192, 16384]
    assert set(first.size.tolist()) == {8192}
    assert first.time[:3].tolist() == [0, 100_000, 200_000]
    assert [str(each.dtype) for each in first[1:]] == ["int64", "uint8", "int64", "int64", "int64"]


@pytest.mark.contract
def test_a_kept_state_has_the_state_of_the_classifier() -> None:
    policy = InTurn()
    alone = _run("page", policies={"ftl.classifier": policy})
    ps.keep_states()
    try:
        kept = [_run("page", policies={"ftl.classifier": policy}) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert [_figures(each) for each in kept] == [_figures(alone)] * 2
    assert policy.requests == 0, "each drive has a copy"


@pytest.mark.contract
def test_a_drive_inside_a_program_classifies() -> None:
    def figures(**keys: Any) -> Any:
        drive = ps.Drive("mga-8k", ftl="page", precondition="fill:100%,random:1x", **STREAMS, **keys)
        drive.play("write", [8192 * (each * 7 % 500) for each in range(3000)], 8192, depth=4)
        drive.submit("write", 8192, 131072)
        drive.wait()
        return _figures(drive.finish())

    keys = {"ftl.classifier": "address", "ftl.hot_below": "2MiB"}
    assert figures(policies={"ftl.classifier": Address}) == figures(**keys) != figures()


def _file(folder: Path, answer: str) -> Path:
    path = folder / "mine.py"
    body = f"""
    import numpy as np

    class Mine:
        def classify(self, requests):
            return {answer}
    """
    path.write_text(textwrap.dedent(body), encoding="utf-8")
    return path


@pytest.mark.contract
def test_a_result_names_the_code_of_a_classifier(tmp_path: Path) -> None:
    path = _file(tmp_path, "requests.size >= 65536")
    result = _run("page", overrides={"ftl.classifier": f"{path}:Mine"})
    named = result.config["ftl"]["classifier"]
    assert named.startswith(f"{path}:Mine@")
    assert _figures(result) == _figures(_run("page", overrides={"ftl.classifier": "size"}))
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(ps.InputError, match="this is other code"):
        _run("page", overrides={"ftl.classifier": named})


ANSWERS = {
    "1 // 0": "ZeroDivisionError",
    "requests.none": "AttributeError",
    "requests.op + 1.5": "array of float64; expected an array of integers or bools",
    "[0] * len(requests.op)": "list; expected an array of integers or bools",
    "None": "NoneType; expected an array",
    "requests.op[:-1]": "shape (",
    "np.full(len(requests.op), 2)": "class 2; expected 0 to 1",
    "np.full(len(requests.op), -1)": "class -1; expected 0 to 1",
}


@pytest.mark.contract
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_wrong_class_ends_the_run(answer: str, tmp_path: Path, palimpsest: Command) -> None:
    path = _file(tmp_path, answer)
    with pytest.raises(ps.PolicyError) as caught:
        _run("page", overrides={"ftl.classifier": f"{path}:Mine"})
    assert ANSWERS[answer] in str(caught.value)
    assert "Mine.classify, " in str(caught.value)
    assert "requests from a write of 8192 bytes at 0 on" in str(caught.value)
    keys = [word for key, value in STREAMS.items() for word in ("--set", f"{key}={value}")]
    ended = palimpsest(
        "run", "--ssd", "mga-8k", "--ftl", "page", *keys, "--set", f"ftl.classifier={path}:Mine", "--workload", LOAD,
    )  # fmt: skip
    assert ended.stderr.splitlines()[-1].startswith("error: ")
    shows_code = "Traceback" in ended.stderr
    assert shows_code == (caught.value.__cause__ is not None)
    assert not shows_code or f"return {answer}" in ended.stderr


@pytest.mark.contract
def test_classifiers_without_effect_are_refused(tmp_path: Path) -> None:
    own: dict[str, Any] = {"ftl.classifier": f"{_file(tmp_path, 'requests.op')}:Mine"}
    with pytest.raises(ps.InputError, match="the classes of writes need streams of their own"):
        ps.run(LOAD, ssd=ps.Ssd("mga-8k", ftl="page", **(SMALL | own)))
    with pytest.raises(ps.InputError, match="gets requests of the host, not writes of a file system"):
        ps.run(LOAD, ssd=ps.Ssd("default", ftl="fs-hotcold", **own))
    with pytest.raises(ps.InputError, match=r"ftl\.classifier"):
        ps.run(LOAD, ssd=ps.Ssd("mga-8k", ftl="mga", **own))
    with pytest.raises(ps.InputError, match=r"ftl.classifier.*programs cannot use a drive with code in Python"):
        ps.serve_nvme("true", ssd=_drive("page", **own))
    with pytest.raises(ps.InputError, match=r"no method classify; expected classify\(self, requests\)"):
        _run("page", policies={"ftl.classifier": object()})
    with pytest.raises(ps.InputError, match=r"no policy of ftl.gc_start is in Python; expected ftl.victim"):
        _run("page", policies={"ftl.gc_start": Size})
    with pytest.raises(ps.InputError, match=r"\"colour\" is not known; expected one of none, .*FILE.py:CLASS"):
        _drive("page", **{"ftl.classifier": "colour"})
