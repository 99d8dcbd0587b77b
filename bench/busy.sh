#!/usr/bin/env bash
# Whether the default number of threads is a good choice beside other programs: tokens a second of a training step (a), (b) and of
# configs/next_token.json with the default, 1 and 2 threads, beside 0, 1 and 2 loops that never sleep; in `onestep` and in a program
# that links the library. The settings take turns, each being first in one turn of three, since the first pays for memory that the
# system has to find; the table gives medians; ratio = default / the better of 1 and 2 threads.
# bench/busy.sh [TURNS]      (default: 3 turns of some two minutes on two cores; ./onestep version builds what is timed)
set -euo pipefail

root=$(readlink -f -- "${BASH_SOURCE[0]%/*}/..")
readonly root build=$root/build/release turns=${1:-3}
readonly program=$build/onestep
if (($# > 1)) || [[ ! $turns =~ ^[1-9][0-9]{0,3}$ ]]; then
  printf 'bench/busy.sh: TURNS: must be a number from 1 to 9999: got "%s"\n' "$*" >&2
  exit 2
fi
[[ -x $program ]] || { echo "bench/busy.sh: $program is missing (./onestep version builds it)" >&2; exit 2; }
folder=$(mktemp -d)
loops=()
stop_loops() {
  ((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true
  loops=()
}
trap 'stop_loops; rm -rf -- "$folder"' EXIT
cd -- "$root"

linked=("$build"/{train/libonestep_train,optim/libonestep_optim,attention/libonestep_attention,nn/libonestep_nn}.a
  "$build"/{autograd/libonestep_autograd,base/libonestep_base}.a)
"${CXX:-c++}" -std=c++20 -O2 -I "$build/include" bench/programs/steps.cpp "${linked[@]}" -lpcre2-8 -pthread -o "$folder/steps"

gpt() { # gpt LAYERS HEADS WIDTH CONTEXT BATCH: the shapes of bench/compare.py
  printf '{"model": {"kind": "gpt", "num_layers": %d, "num_heads": %d, "d_model": %d, "context_length": %d, "bias": false},
    "data": {"kind": "task", "task": "copy", "vocab_size": 65, "length": %d},
    "train": {"batch_size": %d}}\n' "$1" "$2" "$3" "$4" $((($4 + 1) / 2)) "$5"
}
gpt 4 4 128 63 12 >"$folder/(a)"
gpt 6 6 384 255 8 >"$folder/(b)"
cp -- configs/next_token.json "$folder/next_token"
readonly -A steps=(["(a)"]=40 ["(b)"]=3 [next_token]=300)
readonly works=("(a)" "(b)" next_token) programs=(onestep linking) settings=(default 1 2)

# Appends the tokens a second of one training to the file WORK-PROGRAM-LOOPS-SETTING.
measure() { # measure WORK PROGRAM LOOPS SETTING
  local -a sets=(--set train.steps="${steps[$1]}" --set train.eval_every=0 --set train.eval_batches=1) environment=()
  [[ $4 == default ]] || environment=(OMP_NUM_THREADS="$4")
  if [[ $2 == onestep ]]; then
    env "${environment[@]}" "$program" train "$folder/$1" --out "$folder/run" --quiet "${sets[@]}" 2>"$folder/errors" |
      awk '/^speed/ { gsub(",", ""); print $2 }'
    rm -rf -- "$folder/run"
  else
    env "${environment[@]}" "$folder/steps" "$folder/$1" "${sets[@]}"
  fi >>"$folder/$1-$2-$3-$4"
}

median() { sort -n -- "$1" | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

for ((turn = 1; turn <= turns; ++turn)); do
  for busy in 0 1 2; do
    for ((i = 0; i < busy; ++i)); do
      while :; do :; done &
      loops+=($!)
    done
    for work in "${works[@]}"; do
      for one in "${programs[@]}"; do
        for ((i = 0; i < 3; ++i)); do measure "$work" "$one" "$busy" "${settings[(turn + i) % 3]}"; done
      done
    done
    stop_loops
  done
  echo "bench/busy.sh: turn $turn of $turns" >&2
done

echo "| tokens/s | program | busy loops | default | 1 thread | 2 threads | ratio |"
echo "|---|---|---:|---:|---:|---:|---:|"
for work in "${works[@]}"; do
  for one in "${programs[@]}"; do
    for busy in 0 1 2; do
      cell() { median "$folder/$work-$one-$busy-$1"; }
      awk -v title="$work | $one | $busy" -v auto="$(cell default)" -v one="$(cell 1)" -v two="$(cell 2)" \
        'BEGIN { printf "| %s | %d | %d | %d | %.2f |\n", title, auto, one, two, auto / (one > two ? one : two) }'
    done
  done
done
