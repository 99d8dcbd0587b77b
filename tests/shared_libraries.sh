#!/usr/bin/env bash
# The libraries as shared ones, installed and used by tests/consumer: shared_libraries.sh SOURCE BUILD COMPILER
set -euo pipefail
source=$1 build=$2 prefix=$2/prefix
rm -rf -- "$build"
mkdir -p -- "$build"
quietly() { "$@" >"$build/log" 2>&1 || { tail -n 40 -- "$build/log"; exit 1; }; }

quietly cmake -S "$source" -B "$build/shared" -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
  -DONESTEP_TESTS=OFF -DONESTEP_WERROR=ON
quietly cmake --build "$build/shared" --parallel "$(nproc)"
quietly cmake --install "$build/shared" --prefix "$build/first"
mv -- "$build/first" "$prefix" # nothing may depend on where it was
rm -rf -- "$build/shared"
for library in autograd nn attention train; do
  [[ -L $prefix/lib/libonestep_$library.so ]] || { echo "there is no libonestep_$library.so with a version"; exit 1; }
done
"$prefix/bin/onestep" train "$source/configs/next_token.json" --set train.steps=2 --out "$build/run" --quiet

quietly cmake -S "$source/tests/consumer" -B "$build/consumer" -DCMAKE_CXX_COMPILER="$3" -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$build/consumer" --target consumer layer
"$build/consumer/consumer"
"$build/consumer/layer"
ldd "$build/consumer/layer" | grep -q "$prefix/lib/libonestep_nn.so" || { echo "layer does not use the shared library"; exit 1; }
