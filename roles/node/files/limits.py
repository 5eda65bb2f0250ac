"""Prints the soft and the hard limit of this process for each name in the arguments, such as nofile, as JSON.

The limits are in the units of limits.conf.
"""

from __future__ import annotations

import json
import resource
import sys

# The kernel counts bytes and seconds, limits.conf KiB and minutes:
# https://manpages.debian.org/bookworm/libpam-modules/limits.conf.5.en.html
UNITS = {**dict.fromkeys(("as", "core", "data", "fsize", "memlock", "rss", "stack"), 1024), "cpu": 60}

limits = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper())) for name in sys.argv[1:]}
printed = {
    name: sorted({limit if limit == resource.RLIM_INFINITY else limit // UNITS.get(name, 1) for limit in pair})
    for name, pair in limits.items()
}
sys.stdout.write(json.dumps(printed) + "\n")
