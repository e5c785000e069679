"""Memory in large pages: a fork and a child's end then touch hundreds of entries, not a hundred thousand.

Where the kernel cannot do it, a fork takes longer, and that is all.
"""

from __future__ import annotations

import ctypes
import os
import re

_LARGE = 2 << 20  # bytes of a large page on x86-64, and on ARM with pages of 4 KiB
_COLLAPSE = 25  # MADV_COLLAPSE, from Linux 6.1 on
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ 00:00 0\s*(\[heap\])?")


def gather(proc: int | None = None) -> int:
    """Move this process' own memory into large pages; how many there are now.

    Args:
        proc: descriptor of /proc, where that is not in its place.
    """
    try:
        maps = os.open("/proc/self/maps" if proc is None else "self/maps", os.O_RDONLY, dir_fd=proc)
        with open(maps, encoding="ascii", errors="replace") as listed:
            mappings = [found for line in listed if (found := _MAPPING.fullmatch(line.strip()))]
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return 0
    count = 0
    for mapping in mappings:
        first, end = (int(address, 16) // _LARGE * _LARGE for address in (mapping[1], mapping[2]))
        start = first if first == int(mapping[1], 16) else first + _LARGE
        for address in range(start, end, _LARGE):
            count += madvise(ctypes.c_void_p(address), ctypes.c_size_t(_LARGE), _COLLAPSE) == 0
    return count
