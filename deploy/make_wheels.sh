#!/bin/sh
# Collect what the images are made of into deploy/build: wheels for Python 3.11 and the built pages. pip's own configuration
# on this machine says where from; the builds themselves need no network.
#   PYTHON         a Python with pip (default: the checkout's .venv)
#   LADDER_TORCH   what pip is asked for as torch, as in the Makefile
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
torch=${LADDER_TORCH:-torch==2.13.0}
build=deploy/build

platforms=""
for name in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux_2_5 manylinux1; do
    platforms="$platforms --platform ${name}_$(uname -m)"
done

download() { # WHERE REQUIREMENT…
    where=$1
    shift
    # async-timeout: asked for by early versions of Python 3.11, while this pip looks at its own Python's version.
    # shellcheck disable=SC2086  # a list of options, and LADDER_TORCH may bring some
    "$python" -m pip download -qq --disable-pip-version-check --only-binary :all: --python-version 3.11 \
        --implementation cp --abi cp311 --abi abi3 --abi none $platforms --constraint constraints.txt \
        --find-links "$build/own" --dest "$where" "async-timeout>=4.0.3" "$@"
}

rm -rf "$build"
mkdir -p "$build/own" "$build/server/wheels" "$build/worker/wheels"
"$python" -m pip wheel -qq --disable-pip-version-check --no-deps --wheel-dir "$build/own" .
download "$build/server/wheels" "kernel-ladder[server]"
# shellcheck disable=SC2086
download "$build/worker/wheels" $torch "kernel-ladder[harness,worker]"
mkdir "$build/web"
cp -R web/templates web/static "$build/web/"
cp deploy/Dockerfile.server deploy/Dockerfile.worker "$build/"
