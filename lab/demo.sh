#!/usr/bin/env bash
# Runs `make demo`: all chapters on a simulated data centre on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
# Only root can make the guests. Without root, the demo skips the chapters that need guests and reports that.
if [ "$(id -u)" = 0 ]; then
  case " $* " in
    *" --lab vm "*) tools/setup --machines ;;
    *" --lab kubernetes "*) KUBERNETES=1 tools/setup --nodes ;;
    *) tools/setup --nodes ;;
  esac
fi
exec python -m lab.demo "$@"
