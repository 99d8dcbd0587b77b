#!/usr/bin/env bash
# The libraries as shared ones, installed and used by tests/consumer: shared_libraries.sh SOURCE BUILD COMPILER
set -euo pipefail
source=$1 build=$2 prefix=$2/try/prefix
rm -rf -- "$build/try"
mkdir -p -- "$build/try"
quietly() { "$@" >"$build/log" 2>&1 || { tail -n 40 -- "$build/log"; exit 1; }; }

quietly cmake -S "$source" -B "$build" -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
  -DONESTEP_TESTS=OFF -DONESTEP_WERROR=ON
quietly cmake --build "$build" --parallel "$(nproc)"
quietly cmake --install "$build" --prefix "$build/try/first"
mv -- "$build/try/first" "$prefix" # nothing may depend on where it was
for library in base autograd nn attention optim train; do
  [[ -L $prefix/lib/libonestep_$library.so ]] || { echo "there is no libonestep_$library.so with a version"; exit 1; }
done
"$prefix/bin/onestep" train "$source/configs/next_token.json" --set train.steps=2 --set schedule.warmup_steps=0 \
  --out "$build/try/run" --quiet

quietly cmake -S "$source/tests/consumer" -B "$build/try/consumer" -DCMAKE_CXX_COMPILER="$3" -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$build/try/consumer" --target consumer layer
for program in "$prefix/bin/onestep" "$build/try/consumer/layer"; do
  ldd "$program" | grep -q "$prefix/.*libonestep_nn.so" || { echo "$program does not use the installed library"; exit 1; }
done
"$build/try/consumer/consumer"
"$build/try/consumer/layer"
