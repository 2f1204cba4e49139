#!/bin/sh
# Makes sure that napari can be tested without a screen: an environment of its own with napari and Qt, Xvfb, and
# the libraries Qt loads. Leaves with status 3 and a reason where something is missing and may not be installed.
set -eu
venv="$1"
python="${PYTHON:-python3}"

skip() {
    echo "tests/napari skipped: $1" >&2
    exit 3
}

if ! command -v xvfb-run >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || skip "there is no xvfb-run and no apt-get to install it"
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        skip "there is no xvfb-run and installing it needs root: apt-get install xvfb"
    fi
    $as_root apt-get update -qq || skip "apt-get update failed"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends \
        xvfb xauth libegl1 libgl1 libgl1-mesa-dri libopengl0 libdbus-1-3 libfontconfig1 libxkbcommon-x11-0 \
        libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 \
        libxcb-shape0 libxcb-xinerama0 >/dev/null || skip "apt-get install xvfb failed"
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -e ".[napari]" "napari[pyqt6]>=0.6" pytest pytest-qt dask ||
    skip "napari and PyQt6 could not be installed"
