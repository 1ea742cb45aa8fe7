"""Files in the package from other projects, compared byte by byte."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_library_in_the_package_is_what_its_publishers_built() -> None:
    """The hash of `package/plotly-cartesian.min.js` in plotly.js-cartesian-dist-min-4.1.1.tgz of the npm registry."""
    found = (ROOT / "python" / "palimpsest" / "assets" / "plotly-cartesian.min.js").read_bytes()
    expected = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
    assert hashlib.sha256(found).hexdigest() == expected
