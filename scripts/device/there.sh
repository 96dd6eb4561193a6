#!/bin/sh
# Run a command of this tree on a bare GPU machine, with all it needs: a copy under /opt, where users of containers can read
# it; the packages of wheels.sh; the Docker daemon of pack_docker.sh, where .device is carried.
#
#   OUT=DIR bash scripts/device/there.sh sh scripts/device/e2e.sh --set rungs --sandbox docker
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
tree=${TREE:-/opt/kernel-ladder-tree}
site=${SITE:-/opt/kernel-ladder-site}

# Anew each time, and whole or not at all: what is measured is what was sent.
rm -rf "$tree" "$tree.tar"
mkdir -p "$tree"
tar -C "$here" -cf "$tree.tar" --exclude=./.git --exclude=./.venv --exclude=./web/node_modules --exclude=./var/docker \
    --exclude=./.whl --exclude=./.device .
tar -C "$tree" -xf "$tree.tar"
rm "$tree.tar"
chmod -R a+rX "$tree"
ln -s "$here/.whl" "$here/.device" "$tree"
if [ ! -d "$site" ]; then
    rm -rf "$site.new"
    mkdir -p "$site.new"
    tar -xJf "$here/.whl/site.tar.xz" -C "$site.new"
    mv "$site.new" "$site"
fi
cd "$tree"
[ ! -s .device/docker.tar.xz ] || sh scripts/device/docker_up.sh
PYTHONPATH="${DOCKER_HOME:-/usr/local/lib/kernel-ladder-docker}/site:$site:$tree"
TRITON_LIBCUDA_PATH="${TRITON_LIBCUDA_PATH:-/usr/local/nvidia/lib64}"
export PYTHONPATH TRITON_LIBCUDA_PATH
exec "$@"
