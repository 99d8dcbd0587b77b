#!/usr/bin/env bash
# Builds training_hashes with another compiler or build type and checks 500 steps: other_build.sh SOURCE BUILD COMPILER TYPE
set -euo pipefail
cmake -S "$1" -B "$2" -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE="$4" -DONESTEP_TESTS=ON >"$2.log" 2>&1 || { cat "$2.log"; exit 1; }
cmake --build "$2" --target training_hashes --parallel "$(nproc)" >"$2.log" 2>&1 || { tail -n 40 "$2.log"; exit 1; }
exec "$2/tests/training_hashes" check 500
