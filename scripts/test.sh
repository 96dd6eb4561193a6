#!/bin/sh
# Every test. Most share the machine's cores, two at a time, as a judge and its runner take turns. After them come those that
# need more room, in two lines side by side: attacks, which look for each other's traces, one after another; and whole
# installations and browsers, which wait more than they work. Arguments go to pytest instead.
#
# Tests that failed, if they are of a few files only, are run once more, alone in their line: some races are the machine's.
# What passes only then is named at the end, as a bug to be found (docs/decisions/0015-a-second-look.md).
set -u

PATH="$(pwd)/.venv/bin:$PATH"
export PATH
most_files=4
most_tests=40
most_s=540

if [ "$#" -gt 0 ]; then
    exec python -m pytest "$@"
fi

sh scripts/get_browser.sh

attacks="tests/hostile tests/docker"
installations="tests/browser tests/compose tests/e2e"
ignored=""
for folder in $attacks $installations; do ignored="$ignored --ignore=$folder"; done
work=$(mktemp -d)
status=0

failed() {
    python -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1] + "/v/cache/lastfailed"))))' "$1"
}

few() {
    files=$(printf '%s\n' "$1" | sed "s/::.*//" | sort -u | wc -l)
    [ -n "$1" ] && [ "$files" -le "$most_files" ] && [ "$(printf '%s\n' "$1" | wc -l)" -le "$most_tests" ]
}

# look NAME ARGUMENTS: run these tests; what passed only the second time goes to a file. Exit status 1 if any failed.
look() {
    cache="$work/$1"
    unsure="$work/$1.unsure"
    shift
    python -m pytest -o cache_dir="$cache" --durations 40 --durations-min 5 "$@"
    found=$?
    [ "$found" -eq 0 ] && return 0
    names=$(failed "$cache") || names=""
    # 1: tests failed. Anything else is no test's result: no second look.
    if [ "$found" -eq 1 ] && few "$names"; then
        printf '── once more, alone: %s\n' "$names"
        # Whatever the time is: a test that failed is not passed by being too late.
        if LADDER_TESTS_UNTIL="" timeout "$most_s" python -m pytest -o cache_dir="$cache" --last-failed --last-failed-no-failures none "$@" --numprocesses 0; then
            printf '%s\n' "$names" >"$unsure"
            return 0
        fi
    fi
    return 1
}

# shellcheck disable=SC2086  # lists of folders
look most --numprocesses 2 --dist worksteal $ignored tests || status=1
# One daemon for all tests that need Docker; where there can be none, they say why they are skipped.
if docker_host=$(sh scripts/get_docker.sh); then
    export DOCKER_HOST="$docker_host"
    trap 'sh scripts/get_docker.sh stop; rm -rf "$work"' EXIT
else
    trap 'rm -rf "$work"' EXIT
fi
# shellcheck disable=SC2086
look attacks --numprocesses 0 $attacks >"$work/attacks.log" 2>&1 &
line=$!
# shellcheck disable=SC2086
look installations --numprocesses 0 $installations || status=1
wait "$line" || status=1
cat "$work/attacks.log"

for file in "$work"/*.unsure; do
    [ -e "$file" ] && echo "── passed only the second time; find out why: $(cat "$file")"
done
exit "$status"
