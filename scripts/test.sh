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

together="tests/architecture tests/unit"
alone=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $together " in *" $folder "*) continue ;; esac
    if find "$folder" -name 'test_*.py' | grep -q .; then alone="$alone $folder"; fi
done

status=0
# shellcheck disable=SC2086
python -m pytest --numprocesses 2 --dist loadscope $together || status=$?
# shellcheck disable=SC2086
python -m pytest --numprocesses 0 $alone || status=$?
exit $status
