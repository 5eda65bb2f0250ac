#!/usr/bin/env bash
# Runs `make demo`: all chapters on a simulated data centre on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache
log=.cache/demo-setup.log

# Runs a command with its output in the log, shows the last line of the log while it runs, and the log if it fails.
quietly() {
  if command -v python3 >/dev/null; then
    python3 -m lab.progress "$log" "$@"
  else
    "$@" >>"$log" 2>&1
  fi || { status=$?; tail -n 40 "$log" >&2; exit "$status"; }
}

: >"$log"
echo "Preparing this machine: about two minutes the first time, then a moment. Log: $log"
# Builds the image of the nodes beside other work. If it cannot be built yet, the lab builds it later, or reports why not.
start_image() {
  python3 -m lab.nodes.image .cache/lab/podman >>"$log" 2>&1 &
  image=$!
}

# Only root can make the guests. Without root, the demo skips the chapters that need guests and reports that.
image=
if [ "$(id -u)" = 0 ]; then
  case " $* " in
    *" --lab vm "*) quietly tools/setup --machines ;;
    *" --lab kubernetes "*) quietly env KUBERNETES=1 tools/setup --nodes ;;
    *)
      if command -v podman >/dev/null && command -v debootstrap >/dev/null; then start_image; fi
      quietly tools/setup --nodes
      if [ -z "$image" ]; then start_image; fi
      ;;
  esac
fi
quietly make setup
if [ -n "$image" ]; then
  wait "$image" || true
fi
exec python -m lab.demo "$@"
