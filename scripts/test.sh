#!/bin/sh
# Every test. Those that start no judge and no server share the machine's cores; the others run one after another, because
# a kernel that meets its time limit only under load would be a test that lies. Arguments go to pytest instead of the folders.
set -u

PATH="$(pwd)/.venv/bin:$PATH"
export PATH

if [ "$#" -gt 0 ]; then
    exec python -m pytest "$@"
fi

sh scripts/get_browser.sh

# What starts judges, sandboxes or whole installations runs alone; the rest shares the cores.
heavy="tests/unit/autograder tests/unit/worker"
together="tests/architecture tests/migrations tests/unit"
alone=""
for folder in $heavy tests/*/; do
    folder=${folder%/}
    case " $together " in *" $folder "*) continue ;; esac
    if find "$folder" -name 'test_*.py' 2>/dev/null | grep -q .; then alone="$alone $folder"; fi
done
ignored=""
for folder in $heavy; do ignored="$ignored --ignore=$folder"; done

status=0
# shellcheck disable=SC2086
python -m pytest --numprocesses 2 --dist loadscope $ignored $together || status=$?
# shellcheck disable=SC2086
python -m pytest --numprocesses 0 $alone || status=$?
exit $status
