#!/bin/sh
# Have a Docker daemon, and print its DOCKER_HOST: the one that answers, or else one that is started here in var/docker, with
# Debian's packages, by root. `sh scripts/get_docker.sh stop` ends the one that was started. Says why there is none, and exits 1.
set -eu
cd "$(dirname "$0")/.."
folder=$(pwd)/var/docker
host=${DOCKER_HOST:-unix:///var/run/docker.sock}
ours=unix://$folder/docker.sock

answers() { DOCKER_HOST=$1 python3 scripts/device/docker_api.py ping 2>/dev/null; }

if [ "${1:-}" = stop ]; then
    [ ! -s "$folder/pid" ] || kill "$(cat "$folder/pid")" 2>/dev/null || true
    exit 0
fi
for known in "$host" "$ours"; do
    if answers "$known"; then
        echo "$known"
        exit 0
    fi
done

[ "$(id -u)" -eq 0 ] || { echo "no Docker daemon answers, and only root can start one" >&2; exit 1; }
if ! command -v dockerd >/dev/null; then
    command -v apt-get >/dev/null || { echo "dockerd is not installed, and there is no apt-get" >&2; exit 1; }
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq docker.io iptables; } >/dev/null 2>&1 ||
        { echo "docker.io cannot be installed" >&2; exit 1; }
fi
mkdir -p "$folder"
rm -f "$folder/pid"
setsid dockerd --host "$ours" --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \
    >"$folder/log" 2>&1 </dev/null &
attempts=0
until answers "$ours"; do
    attempts=$((attempts + 1))
    [ "$attempts" -lt 150 ] || { echo "dockerd does not start here: $(tail -n 3 "$folder/log")" >&2; exit 1; }
    sleep 0.2
done
echo "$ours"
