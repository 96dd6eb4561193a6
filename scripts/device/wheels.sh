#!/bin/sh
# Collect into .whl what a bare GPU machine needs to serve and to grade: a machine with Linux on x86-64, Python 3.12, torch
# and triton, and no network. Versions are those of .venv. They travel unpacked in one archive, which is much smaller than
# the wheels. There:
#   mkdir SITE && tar -xJf .whl/site.tar.xz -C SITE && PYTHONPATH=SITE python3 -m client up
# Usage: sh scripts/device/wheels.sh
set -eu
cd "$(dirname "$0")/../.."
folder=.whl
python=${PYTHON:-.venv/bin/python}

names() {
    "$python" - <<'PYTHON'
import re
from importlib.metadata import PackageNotFoundError, distribution

# There already, with the GPU's own builds; the tests' and checks' tools are not needed, and nobody compares sources there.
SKIPPED = {"torch", "triton", "numpy", "kernel-ladder", "uvloop", "copydetect"}
ROOTS = [
    *(line for line in distribution("kernel-ladder").requires or [] if re.search(r"extra == '(server|worker|node)'", line)),
    *(line for line in distribution("kernel-ladder").requires or [] if "extra ==" not in line),
    "cryptography", "docker", "nvidia-ml-py", "requests", "supervisor",
]
found = {}


def visit(requirement):
    name = re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-")
    if name in SKIPPED or name in found:
        return
    try:
        found[name] = distribution(name).version
    except PackageNotFoundError:
        return  # for another system or version of Python
    for extra in re.findall(r"\[([a-z,]+)\]", requirement.split(";")[0]):
        for line in distribution(name).requires or []:
            if f'extra == "{extra}"' in line.replace("'", '"'):
                visit(line)
    for line in distribution(name).requires or []:
        if "extra ==" not in line:
            visit(line)


for root in ROOTS:
    visit(root)
print("\n".join(f"{name}=={version}" for name, version in sorted(found.items())))
PYTHON
}

platforms=""
for name in manylinux_2_34 manylinux_2_31 manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux_2_5 manylinux1; do
    platforms="$platforms --platform ${name}_x86_64"
done
rm -rf "$folder"
mkdir "$folder"
# shellcheck disable=SC2046,SC2086  # lists of words
"$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --only-binary :all: --python-version 3.12 \
    --implementation cp --abi cp312 --abi abi3 --abi none $platforms --target "$folder/site" $(names)
# What no import needs: sources of what is compiled, its symbols, the packages' own tests, scripts that name this machine's Python.
find "$folder/site" -type f \( -name '*.c' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.h' \) -delete
find "$folder/site" -name '*.so*' -exec strip --strip-unneeded {} +
rm -rf "$folder/site/bin"
find "$folder/site" -depth -type d \( -name tests -o -name test \) -exec rm -rf {} +
tar -C "$folder/site" --sort=name --owner=0 --group=0 -cJf "$folder/site.tar.xz" .
rm -rf "$folder/site"
du -sh "$folder"
