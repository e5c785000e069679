#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image: a Python of its own, PyTorch for processors, the course.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
course="$root/source/course"

apt-get update
apt-get install --yes --no-install-recommends python3-pip
PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install uv
uv venv --python 3.12 "$root/venv"
uv pip install --python "$root/venv/bin/python" --torch-backend cpu \
  --constraint "$course/constraints.txt" --editable "$course[grading]"

# what the container allows while it is built; while it grades, run_autograder says what is missing
cd "$course"
"$root/venv/bin/python" -m vit_course doctor || true
