#!/usr/bin/env bash
# What `make demo` shows: the whole story on the simulated data centre of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python -m lab.demo
