#!/bin/sh
# Make the image of runners on this machine, where no image registry can be reached, and print its id (docs/sandbox.md).
#   sh deploy/make_runner_image.sh host [NAME]   empty folders: this machine's own toolchain is mounted read-only; a second
#   sh deploy/make_runner_image.sh full [NAME]   Debian, torch and what the languages need, in the image; minutes. Needs root and
#                                                debootstrap
#   LADDER_TORCH           what pip is asked for as torch, as in the Makefile
#   LADDER_DEBIAN_MIRROR   where debootstrap gets Debian from (default: its own)
set -eu
cd "$(dirname "$0")/.."
kind=${1:?host or full}
if [ "$kind" = host ]; then
    exec python3 scripts/device/docker_api.py image "${2:-kernel-ladder/host}"
fi
name=${2:-kernel-ladder/runner}
python=${PYTHON:-.venv/bin/python}
base=kernel-ladder/runner-base
packages=$("$python" -m autograder.languages packages)
distributions=$("$python" -m autograder.languages distributions)
system=$("$python" -m autograder.languages system | paste -sd , -)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

if ! docker image inspect "$base" >/dev/null 2>&1; then
    # shellcheck disable=SC2086  # without a mirror there is no argument
    debootstrap --variant=minbase "--include=python3,python3-venv,$system" bookworm "$context/root" \
        ${LADDER_DEBIAN_MIRROR:-} >"$context/log" 2>&1 || { tail -n 20 "$context/log" >&2; exit 1; }
    install -d -m 1777 "$context/root/tmp"
    tar -C "$context/root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc \
        --exclude=./usr/share/man --exclude=./usr/share/locale --exclude='./dev/*' -c . | docker import - "$base" >/dev/null
    rm -rf "$context/root"
fi
# Debian 12 has Python 3.11, whatever this machine has.
platforms=""
for tag in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux_2_5 manylinux1; do
    platforms="$platforms --platform ${tag}_$(uname -m)"
done
# shellcheck disable=SC2086  # lists of options
"$python" -m pip download -qq --disable-pip-version-check --only-binary :all: --python-version 3.11 --implementation cp \
    --abi cp311 --abi abi3 --abi none $platforms --constraint constraints.txt --dest "$context/wheels" \
    ${LADDER_TORCH:-torch==2.13.0} $packages "numpy>=2.3,<2.5"
cp deploy/Dockerfile.runner "$context/Dockerfile"
# shellcheck disable=SC2086  # one line of a list
DOCKER_BUILDKIT=0 docker build --quiet --network none --build-arg "BASE=$base" \
    --build-arg "LANGUAGES=$(echo $distributions)" --tag "$name" "$context"
