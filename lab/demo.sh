#!/usr/bin/env bash
# What `make demo` shows: the whole story on the simulated data centre of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
# The guests are nodes, which only root can make; without them the demo shows the rest and says so.
if [ "$(id -u)" = 0 ]; then
  case " $* " in
    *" --lab vm "*) tools/setup --machines ;;
    *" --lab kubernetes "*) KUBERNETES=1 tools/setup --nodes ;;
    *) tools/setup --nodes ;;
  esac
fi
exec python -m lab.demo "$@"
