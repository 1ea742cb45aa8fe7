"""Files of other projects, compared byte by byte."""

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


LIBRARIES = {
    "python/palimpsest/assets/plotly-cartesian.min.js": (
        "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
    ),
    "docs/assets/iframe-worker.js": "512d74bf24286113a2b20770062004dd13c3a3711fc8f836a7fc8d5a3ee6cebf",
}
"""Hashes of `package/plotly-cartesian.min.js` in plotly.js-cartesian-dist-min-4.1.1.tgz of the npm registry, and of
`package/shim/index.js` in iframe-worker-1.0.3.tgz."""


@pytest.mark.parametrize("path", LIBRARIES)
def test_a_library_is_what_its_publishers_built(path: str) -> None:
    assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == LIBRARIES[path]
