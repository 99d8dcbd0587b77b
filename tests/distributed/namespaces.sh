#!/usr/bin/env bash
# Three ranks, each on a machine of its own as far as MPI can tell (a network namespace and a host name), over a network that
# delays and loses packets (tc netem; where the kernel has none, tc tbf, a line so slow that packets wait and are dropped): the
# checkpoint must have the bits of a run without MPI.
# tests/distributed/namespaces.sh PROGRAM [DELAY JITTER LOSS]      (default: 2ms 1ms 1%)
set -euo pipefail

program=$(readlink -f -- "$1")
readonly program delay=${2:-2ms} jitter=${3:-1ms} loss=${4:-1%}
readonly subnet=10.77.33 machines=(1 2 3)

skip() {
  echo "skipped: $*"
  exit 0
}
for tool in ip tc mpirun unshare; do command -v "$tool" >/dev/null || skip "there is no $tool"; done
[[ $("$program" version) == *"MPI: Open MPI"* ]] || skip "the program was not built with Open MPI"
[[ $(mpirun --version) == *"Open MPI"* ]] || skip "mpirun is that of another MPI"
unshare --net --uts true 2>/dev/null || skip "network namespaces are not permitted here"

folder=$(mktemp -d)
readonly folder prefix=onestep-$$
network_down() {
  local n
  for n in "${machines[@]}" switch; do ip netns del "$prefix-$n" 2>/dev/null || true; done
  rm -rf -- "$folder"
}
trap network_down EXIT

ip netns add "$prefix-switch" || skip "network namespaces cannot be added here"
ip -n "$prefix-switch" link add bridge type bridge || skip "bridges are not permitted here"
ip -n "$prefix-switch" link set bridge up
network=
for n in "${machines[@]}"; do
  ip netns add "$prefix-$n"
  ip -n "$prefix-switch" link add "port$n" type veth peer name eth0 netns "$prefix-$n"
  ip -n "$prefix-switch" link set "port$n" master bridge up
  ip -n "$prefix-$n" address add "$subnet.$n/24" dev eth0
  ip -n "$prefix-$n" link set lo up
  ip -n "$prefix-$n" link set eth0 up
  wire=(tc -n "$prefix-$n" qdisc add dev eth0 root)
  if "${wire[@]}" netem delay "$delay" "$jitter" loss "$loss" 2>/dev/null; then
    network="$delay +- $jitter delay, $loss loss"
  elif "${wire[@]}" tbf rate 100mbit burst 8kb latency 1ms 2>/dev/null; then
    network="100 Mbit/s, all that waits longer than 1 ms lost (delay and loss skipped: this kernel has no netem)"
  else
    network="no delay, no loss (skipped: this kernel has neither netem nor tbf)"
  fi
done

# What mpirun calls in place of ssh: HOST COMMAND...
cat >"$folder/enter" <<EOF
#!/bin/sh
machine=\${1##*.}
shift
exec ip netns exec $prefix-\$machine unshare --uts sh -c "hostname machine\$machine; \$*"
EOF
chmod +x "$folder/enter"

cat >"$folder/config.json" <<'EOF'
{ "seed": 9,
  "model": { "kind": "gpt", "d_model": 32, "num_heads": 4, "num_layers": 2, "context_length": 16, "dropout": 0.1 },
  "data": { "kind": "task", "task": "sort", "vocab_size": 12, "length": 8 },
  "train": { "steps": 25, "batch_size": 2, "grad_accumulation": 4, "grad_clip": 0.5 } }
EOF
cd -- "$folder"
"$program" train config.json --out alone --quiet --threads 1 >/dev/null
"$folder/enter" "$subnet.1" mpirun --allow-run-as-root --host "$subnet.1,$subnet.2,$subnet.3" -n 3 --bind-to none \
  --mca plm_rsh_agent "$folder/enter" --mca pml ob1 --mca btl tcp,self \
  --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" \
  "$program" train config.json --out ranks --quiet --threads 1 >"$folder/log" 2>&1 || {
  cat -- "$folder/log"
  exit 1
}
sent=$(ip -n "$prefix-2" -s -o link show eth0 | sed 's/.*TX:[^\\]*\\ *\([0-9]*\).*/\1/')
for file in model.safetensors optimizer.safetensors; do
  cmp "alone/checkpoints/step-25/$file" "ranks/checkpoints/step-25/$file"
done
lost=$(tc -n "$prefix-2" -s qdisc show dev eth0 | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
echo "three machines, $network: the bits of one process; rank 1 sent $sent bytes through its network, which lost $lost packets"
