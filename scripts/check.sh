#!/bin/sh
# Every rule that a machine can check, all of them even if one fails. `make check` and CI run this.
set -u

PATH="$(pwd)/.venv/bin:$PATH"
export PATH
failed=""

step() {
    name=$1
    shift
    printf '%s\n' "── $name"
    "$@" || failed="$failed $name;"
}

step "format" ruff format --check --quiet .
step "lint" ruff check --quiet .
step "types" mypy --no-error-summary
step "types of the scripts" mypy --no-error-summary scripts/*.py
step "types of the chaos run" mypy --no-error-summary -p tests.chaos
step "types of the red team" mypy --no-error-summary -p tests.redteam
step "import rules" lint-imports --no-logo
step "house rules" python scripts/house_rules.py

if [ -n "$failed" ]; then
    printf '\nfailed:%s\n' "$failed"
    exit 1
fi
printf '\neverything holds\n'
