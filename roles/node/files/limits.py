"""Prints the soft and the hard limit of this process for each name in the arguments, such as nofile, as JSON."""

from __future__ import annotations

import json
import resource
import sys

limits = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper())) for name in sys.argv[1:]}
sys.stdout.write(json.dumps({name: sorted(set(pair)) for name, pair in limits.items()}) + "\n")
