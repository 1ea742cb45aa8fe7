"""The trace format `mine`, as installed."""

import gzip
from pathlib import Path

import palimpsest as ps

TRACE = b"# time op sector sectors\n100 W 0 8\n150 R 0 8\n175 D 8 16\n"


def test_the_requests_are_those_of_the_trace(tmp_path: Path) -> None:
    """Describes a compressed trace, and runs the trace."""
    path = tmp_path / "small.gz"
    path.write_bytes(gzip.compress(TRACE))
    found = ps.trace(str(path), format="mine").info()
    assert found["format"] == "mine"
    assert {kind: found["requests"][kind] for kind in ("read", "write", "trim")} == {"read": 1, "write": 1, "trim": 1}
    result = ps.Ssd("mga-8k", ftl="page").run(str(path), format="mine", payload="tag")
    assert result.requests["write"] == 1
