#!/bin/sh
# Run a command of this tree on a bare GPU machine, with all it needs: a copy under /opt, where users of containers can read
# it; the packages of wheels.sh; the Docker daemon of pack_docker.sh, where .device is carried. Doing it again takes what is there.
#
#   OUT=DIR bash scripts/device/there.sh sh scripts/device/e2e.sh --set rungs --sandbox docker
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
tree=${TREE:-/opt/kernel-ladder-tree}
site=${SITE:-/opt/kernel-ladder-site}

if [ ! -d "$tree" ]; then
    mkdir -p "$tree"
    tar -C "$here" -c --exclude=./.git --exclude=./.venv --exclude=./web/node_modules --exclude=./var/docker --exclude=./.whl \
        --exclude=./.device . | tar -C "$tree" -x
    chmod -R a+rX "$tree"
    ln -s "$here/.whl" "$here/.device" "$tree"
fi
if [ ! -d "$site" ]; then
    mkdir -p "$site"
    tar -xJf "$here/.whl/site.tar.xz" -C "$site"
fi
cd "$tree"
[ ! -s .device/docker.tar.xz ] || sh scripts/device/docker_up.sh
PYTHONPATH="${DOCKER_HOME:-/usr/local/lib/kernel-ladder-docker}/site:$site:$tree"
TRITON_LIBCUDA_PATH="${TRITON_LIBCUDA_PATH:-/usr/local/nvidia/lib64}"
export PYTHONPATH TRITON_LIBCUDA_PATH
exec "$@"
