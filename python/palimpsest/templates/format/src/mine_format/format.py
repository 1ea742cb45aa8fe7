"""The trace format `mine`: lines of time in us, kind, first sector and sectors, such as `1200 W 8 16`."""

from collections.abc import Iterator
from typing import BinaryIO

KINDS = {b"R": "read", b"W": "write", b"D": "trim"}
SECTOR = 512


class Mine:
    """Lines of four columns; other lines are comments."""

    def requests(self, trace: BinaryIO) -> Iterator[tuple[int, str, int, int]]:
        """Yields time (ns), kind, first byte and bytes of each request."""
        for line in trace:
            columns = line.split()
            if len(columns) == 4 and columns[1] in KINDS:
                time, kind, sector, sectors = columns
                yield int(time) * 1000, KINDS[kind], int(sector) * SECTOR, int(sectors) * SECTOR
