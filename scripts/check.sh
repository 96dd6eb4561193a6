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
# The large course is a package, which tests use too; the others are files.
packaged="docs_site reference bench_web every_page large_course large_grading large_staff seed_large"
alone=$(ls scripts/*.py)
for name in $packaged; do alone=$(echo "$alone" | grep -v "^scripts/$name.py$"); done
# shellcheck disable=SC2086  # a list of files
step "types of the scripts" mypy --no-error-summary $alone
step "types of the reference" mypy --no-error-summary -m scripts.reference
step "types of the large course" mypy --no-error-summary -m scripts.bench_web -m scripts.seed_large
step "types of the chaos run" mypy --no-error-summary -p tests.chaos
step "types of the test runs" mypy --no-error-summary -p tests.suite
step "types of the red team" mypy --no-error-summary -p tests.redteam
step "types of the corpora" mypy --no-error-summary -m tests.exploits.__main__ -m tests.styles.__main__
step "import rules" lint-imports --no-logo
step "settings in the docs" python -m scripts.reference --check
step "links of the docs" sh -c 'mkdir -p var; NO_MKDOCS_2_WARNING=1 mkdocs build --site-dir var/site >var/docs.log 2>&1 || { grep -v "^INFO" var/docs.log; exit 1; }'
step "house rules" python scripts/house_rules.py

if [ -n "$failed" ]; then
    printf '\nfailed:%s\n' "$failed"
    exit 1
fi
printf '\neverything holds\n'
