#!/bin/sh
# A Chromium for the browser tests: the machine's own, Debian's package where we may install it, Playwright's otherwise.
# Finding none is not an error here: the tests that need it skip, and say so.
set -u

works() {
    for name in chromium chromium-browser google-chrome; do
        # Ubuntu's chromium-browser may be a stub that only tells you to install a snap.
        if "$name" --version >/dev/null 2>&1; then
            echo "browser: $("$name" --version 2>/dev/null | head -n 1)"
            return 0
        fi
    done
    return 1
}

from_playwright() {
    python -c 'import pathlib, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    sys.exit(not pathlib.Path(p.chromium.executable_path).exists())' 2>/dev/null
}

works && exit 0
from_playwright && echo "browser: Playwright's own Chromium" && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null 2>&1 && works && exit 0
fi
timeout 600 python -m playwright install chromium >/dev/null 2>&1 && from_playwright &&
    echo "browser: Playwright's own Chromium" && exit 0
echo "browser: none could be found or installed; the tests that need one will skip"
exit 0
