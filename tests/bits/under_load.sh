#!/usr/bin/env bash
# 20 runs of 500 steps with 8 threads each, four at a time on however few cores there are: under_load.sh TRAINING_HASHES
set -euo pipefail
export OMP_NUM_THREADS=8
printf '%s\n' 1 2 3 4 | xargs -P 4 -I{} "$1" repeat 500 5
