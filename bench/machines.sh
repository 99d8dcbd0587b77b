#!/usr/bin/env bash
# What 1 to 64 machines would give for GPT-2 with 124 million parameters, from what one of them was measured to do:
# bench/machines.sh TOKENS_A_SECOND        (onestep bench step with the model's shape; docs/distributed.md says how it is derived)
set -euo pipefail
if (($# != 1)) || [[ ! $1 =~ ^[0-9]+([.][0-9]+)?$ || ! $1 =~ [1-9] ]]; then
  printf 'machines.sh: TOKENS_A_SECOND: must be one number above 0, such as 1500: got "%s"\n' "$*" >&2
  exit 2
fi
awk -v speed="$1" 'BEGIN {
  bytes = 4 * 124439808        # the gradient, or the parameters
  micro_batches = 64           # a step of half a million tokens, as GPT-2 was trained with
  tokens = 8 * 1024            # a micro-batch
  print "| machines | 1 Gbit/s | 10 Gbit/s | 100 Gbit/s |"
  print "|---|---|---|---|"
  for (n = 1; n <= 64; n *= 2) {
    row = "| " n
    for (gigabits = 1; gigabits <= 100; gigabits *= 10) {
      exchange = bytes * (n - 1) / n / (gigabits * 1e9 / 8)  # every machine sends and receives all but its own slice
      rounds = micro_batches / n
      step = rounds * (tokens / speed + exchange) + exchange  # gradients after every round, parameters after the update
      total = micro_batches * tokens / step
      row = row sprintf(" | %.0f tokens/s, %.0f %%", total, 100 * total / speed / n)
    }
    print row " |"
  }
}'
