#!/bin/sh
# Fills the virtual environment of an image, every file checked against its hash in requirements.lock.
#
#   install.sh dependencies PREFIX EXTRA...   what the planner needs with these extras, and nothing else of the lock
#   install.sh planner PREFIX                 the planner itself, from the working directory
#
# In two parts, so that a change of the code does not install everything anew. The tools lie beside PREFIX and stay behind.
set -eu
part=$1 prefix=$2
shift 2
tools=$prefix-tools

dependencies() {
    python3 -m venv "$tools"
    # pip wants every requirement with its version, so uv's own lines of the lock go first; uv takes a lock as constraint.
    awk '/^uv==/ {inside = 1} inside {print} inside && !/\\$/ {exit}' requirements.lock >"$tools/uv.lock"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r "$tools/uv.lock"
    locked "$tools" "$(sed -n 's/^\(hatchling==[^ ]*\).*/\1/p' requirements.lock)"
    python3 -m venv --without-pip "$prefix"
    extras=""
    for extra in "$@"; do extras="$extras --extra $extra"; done
    # shellcheck disable=SC2086 # one word for each extra
    locked "$prefix" -r pyproject.toml $extras
}

locked() {
    target=$1
    shift
    "$tools/bin/uv" pip install --quiet --no-config --compile-bytecode --python "$target/bin/python" \
        --require-hashes --constraint requirements.lock "$@"
}

planner() {
    "$tools/bin/uv" build --quiet --no-config --wheel --no-build-isolation --python "$tools/bin/python" --out-dir "$tools/wheel" .
    "$tools/bin/uv" pip install --quiet --no-config --compile-bytecode --python "$prefix/bin/python" --no-deps --no-index "$tools"/wheel/*.whl
}

case "$part" in
    dependencies) dependencies "$@" ;;
    planner) planner ;;
    *)
        echo "install.sh: found part '$part', expected dependencies or planner" >&2
        exit 2
        ;;
esac
