#!/usr/bin/env bash
# Run the smoke test of the wheel for aarch64 under qemu, with Debian's Python for aarch64.
#
#     tests/aarch64.sh WHEEL FOLDER PYTHON
#
# FOLDER holds what is fetched; PYTHON is one of this machine with pip. Nothing of the system changes, except that
# qemu-user-static is installed if it is missing and that is allowed. Exit status 3: not possible here.
set -euo pipefail
wheel=$1 folder=$(mkdir -p "$2" && cd "$2" && pwd) python=$3
unavailable() { echo "the wheel for aarch64 was not run: $1"; exit 3; }

command -v apt-get >/dev/null && command -v dpkg >/dev/null || unavailable "this is not Debian"
command -v qemu-aarch64-static >/dev/null || apt-get install -qq -y --no-install-recommends qemu-user-static >/dev/null 2>&1 ||
    unavailable "qemu-user-static is missing; apt-get install qemu-user-static"

if [ ! -e "$folder/system/.complete" ]; then
    # Lists and packages of the other architecture, apart from those of this machine.
    rm -rf "$folder/system" && mkdir -p "$folder/system" "$folder/apt/lists/partial" "$folder/apt/archives/partial"
    touch "$folder/apt/status"
    other=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State="$folder/apt"
        -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt")
    apt-get "${other[@]}" update >/dev/null || unavailable "Debian's archive cannot be reached"
    apt-get "${other[@]}" install -y --no-install-recommends --download-only python3 libstdc++6 >/dev/null ||
        unavailable "Debian has no Python for aarch64"
    for package in "$folder"/apt/archives/*.deb; do dpkg -x "$package" "$folder/system"; done
    touch "$folder/system/.complete"
fi

emulated="qemu-aarch64-static -L $folder/system $folder/system/usr/bin/python3"
version=$($emulated -c 'import sys; print("%d.%d" % sys.version_info[:2])')
platforms=()
for glibc in 17 24 26 27 28 31 34; do platforms+=(--platform "manylinux_2_${glibc}_aarch64"); done
rm -rf "$folder/packages"
"$python" -m pip install --quiet --no-compile --target "$folder/packages" --python-version "$version" \
    --platform manylinux2014_aarch64 "${platforms[@]}" --only-binary=:all: "$wheel"
PYTHONPATH=$folder/packages PYTHON_COMMAND=$emulated $emulated "$(dirname "$0")/smoke.py"
