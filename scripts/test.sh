#!/bin/sh
# Every test. Most share the machine's cores, two at a time, as a judge and its runner take turns; what runs a whole
# installation, a browser, or attacks that look for each other's traces comes after them, alone. Arguments go to pytest instead.
set -u

PATH="$(pwd)/.venv/bin:$PATH"
export PATH

if [ "$#" -gt 0 ]; then
    exec python -m pytest "$@"
fi

sh scripts/get_browser.sh

alone="tests/browser tests/compose tests/e2e tests/hostile"
ignored=""
for folder in $alone; do ignored="$ignored --ignore=$folder"; done

status=0
# shellcheck disable=SC2086  # lists of folders
python -m pytest --numprocesses 2 --dist worksteal $ignored tests || status=$?
# shellcheck disable=SC2086
python -m pytest --numprocesses 0 $alone || status=$?
exit $status
