#!/bin/sh
# Make a virtual environment with pip at $1, without sudo. Debian ships Python without the part that does it, so there are
# three ways, and a message that names the package when none works.
set -eu

folder=$1

new_enough() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Kernel Ladder needs Python 3.11 or newer; none was found. Set PYTHON to one." >&2
    exit 1
}

can_pip() {
    "$folder/bin/python" -m pip --version >/dev/null 2>&1
}

make_it() {
    "$python" -m venv "$folder" >/dev/null 2>&1 && can_pip && return
    rm -rf "$folder"
    command -v virtualenv >/dev/null 2>&1 && virtualenv --quiet --python "$python" "$folder" && can_pip && return
    # A system pip can install pip into an environment that was made without it.
    rm -rf "$folder"
    "$python" -m venv --without-pip "$folder" >/dev/null 2>&1 &&
        "$python" -m pip --python "$folder/bin/python" install --quiet pip 2>/dev/null && can_pip && return
    rm -rf "$folder"
    return 1
}

install_venv_package() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    echo "Python's venv module is incomplete; installing the package python3-venv." >&2
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
}

python=$(find_python)
echo "Making $folder with $("$python" --version)"
if ! make_it && ! { install_venv_package && make_it; }; then
    echo "This Python cannot make a virtual environment: its venv module has no ensurepip." >&2
    echo "On Debian and Ubuntu:  sudo apt-get install python3-venv   (then run make again)" >&2
    exit 1
fi
"$folder/bin/python" -m pip install --quiet --upgrade pip
