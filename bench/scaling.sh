#!/usr/bin/env bash
# How ranks and threads use the cores of one machine: tokens/s, efficiency, share of time spent exchanging and bytes sent a step, for
# the character GPT of configs/shakespeare_char.json. The best of so many runs each, taken in turns:
# what else the machine does only takes away.
# bench/scaling.sh [STEPS] [RUNS]      (default: 30 steps, 3 runs)
set -euo pipefail

root=$(readlink -f -- "${BASH_SOURCE[0]%/*}/..")
readonly root program=$root/build/release/onestep steps=${1:-30} runs=${2:-3}
mpi=$(mpirun --version 2>/dev/null) || { echo "bench/scaling.sh: there is no mpirun" >&2; exit 2; }
[[ -x $program ]] || { echo "bench/scaling.sh: $program is missing (./onestep version builds it)" >&2; exit 2; }
readonly mpi
options=(--bind-to none)
[[ $mpi != *"Open MPI"* ]] || options+=(--oversubscribe --allow-run-as-root)
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$root"

# Appends "tokens/s share-of-exchange bytes" of one run to the file NAME.
measure() { # measure NAME RANKS THREADS [REDUCE]
  mpirun "${options[@]}" -n "$2" "$program" train configs/shakespeare_char.json \
    --out "$folder/run" --quiet --threads "$3" --set train.grad_accumulation=4 --set train.steps="$steps" \
    --set train.eval_every=0 --set train.eval_batches=1 --set distributed.reduce="${4:-exact}" 2>"$folder/errors" |
    awk '/^speed/ { gsub(",", ""); speed = $2 } /^exchange/ { gsub(",", ""); share = $2; bytes = $7 }
         END { print speed, share + 0, bytes + 0 }' >>"$folder/$1"
}
for ((i = 0; i < runs; ++i)); do
  measure one-thread 1 1
  measure two-threads 1 2
  measure two-ranks 2 1
  measure allreduce 2 1 allreduce
done

best() { sort -n "$folder/$1" | tail -n 1; } # best NAME
base=$(best one-thread | cut -d ' ' -f 1)
echo "| ranks x threads | tokens/s | efficiency | exchange | bytes a step sent by a rank |"
echo "|---|---|---|---|---|"
row() { # row TITLE NAME CORES
  best "$2" | awk -v title="$1" -v base="$base" -v cores="$3" \
    '{ printf "| %s | %d | %.0f %% | %.1f %% | %d |\n", title, $1, 100 * $1 / base / cores, $2, $3 }'
}
row "1 x 1" one-thread 1
row "1 x 2" two-threads 2
row "2 x 1" two-ranks 2
row "2 x 1, allreduce" allreduce 2
