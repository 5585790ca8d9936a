#!/usr/bin/env bash
# Builds the virtual environment named by $1 from requirements.lock, every file checked against its hash.
set -euo pipefail
venv=$1
python=${PYTHON:-python3.11}
command -v "$python" >/dev/null 2>&1 || python=python3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: found $("$python" --version 2>&1 || echo 'no Python'), expected Python 3.11 or newer: install it, or name it with PYTHON=" >&2
    exit 3
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    echo "setup: $python has no ensurepip: install its venv package (Debian: apt-get install python3-venv)" >&2
    exit 3
fi
echo "setup: building $venv from requirements.lock" >&2
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
if [ ! -x "$venv/bin/uv" ]; then
    # uv installs the rest in a fraction of pip's time; its own hashes stand in the lock like all others.
    awk '/^uv==/ {inside = 1} inside {print} inside && !/\\$/ {exit}' requirements.lock >"$venv/uv.lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$venv/uv.lock"
fi
# Where Python may not keep what it compiles (containers, CI), every process would compile all that it imports again.
[ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || export UV_COMPILE_BYTECODE=1
"$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.lock
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
[ -z "${UV_COMPILE_BYTECODE:-}" ] || "$venv/bin/python" -m compileall -q planner spark_apps dags scripts tests benchmarks
