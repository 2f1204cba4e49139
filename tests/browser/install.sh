#!/bin/sh
# Makes sure that there is a Chromium for the browser tests; on Debian and its kin it is installed if missing.
set -eu
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ -n "${VNLEM_BROWSER:-}" ]; then exit 0; fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "no Chromium was found and there is no apt-get to install it: install Chromium, or set VNLEM_BROWSER to its path" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "no Chromium was found and installing it needs root: run 'apt-get install chromium' as root, or set VNLEM_BROWSER to its path" >&2
    exit 1
fi
$as_root apt-get update -qq
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null
