#!/bin/sh
# On a bare machine: unpack what pack_docker.sh packed, start dockerd without any network, and make the image of empty
# folders (docs/sandbox.md says what it is for). Prints the image's id, and nothing else on stdout. Doing it again only prints
# the id. The daemon has a session of its own and stays when this ends; its log is /var/log/kernel-ladder-dockerd.log. The Python
# package docker is then in $DOCKER_HOME/site, for PYTHONPATH.
set -eu
cd "$(dirname "$0")/../.."
packed=.device/docker.tar.xz
home=${DOCKER_HOME:-/usr/local/lib/kernel-ladder-docker}
socket=/var/run/docker.sock
log=/var/log/kernel-ladder-dockerd.log

if ! python3 scripts/device/docker_api.py ping 2>/dev/null; then
    if [ ! -x "$home/bin/dockerd" ]; then
        mkdir -p "$home"
        tar -C "$home" -xJf "$packed"
        for wheel in .device/docker-*.whl; do python3 -m zipfile -e "$wheel" "$home/site"; done
    fi
    # A kernel whose init mounts nothing.
    grep -q ' /sys/fs/cgroup' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
    rm -f "$socket" /var/run/docker.pid
    PATH="$home/bin:$PATH" LD_LIBRARY_PATH="$home/lib" setsid dockerd --host "unix://$socket" --iptables=false --ip6tables=false \
        --bridge=none --data-root /var/lib/kernel-ladder-docker >"$log" 2>&1 </dev/null &
    attempts=0
    until python3 scripts/device/docker_api.py ping 2>/dev/null; do
        attempts=$((attempts + 1))
        [ "$attempts" -lt 150 ] || { echo "dockerd does not answer:" >&2; tail -n 30 "$log" >&2; exit 1; }
        sleep 0.2
    done
fi
python3 scripts/device/docker_api.py image
