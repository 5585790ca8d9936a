#!/usr/bin/env bash
# Succeeds when Java 17 or newer is there. As root on Debian it installs what is missing; else it says what to install.
#   --try         what cannot be had is only told: tests that need it are then skipped by name
#   mvn:maven     further commands that must be there, each with its Debian package
set -euo pipefail

cannot=3
if [ "${1:-}" = --try ]; then
    cannot=0
    shift
fi

java_is_there() {
    local version
    version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge 17 ]
}

missing=()
java_is_there || missing+=(openjdk-17-jre-headless)
for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "setup: installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "setup: missing ${missing[*]} (Debian package names): install them, then run again" >&2
exit $cannot
