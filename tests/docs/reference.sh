#!/usr/bin/env bash
# The comments of the public headers are well formed: reference.sh BUILD makes BUILD/reference as docs/Doxyfile says, which fails on a
# warning. Exit status 77 where there is no Doxygen.
set -euo pipefail
build=$(realpath -- "$1")
cd -- "$(dirname -- "$0")/../.."
if ! command -v doxygen >/dev/null; then
  echo "reference: skipped: there is no doxygen (Debian: doxygen)"
  exit 77
fi
rm -rf -- "$build/reference"
{ cat docs/Doxyfile && printf 'OUTPUT_DIRECTORY = "%s/reference"\n' "$build"; } | doxygen -
[[ -s $build/reference/html/classonestep_1_1Tensor.html ]]
