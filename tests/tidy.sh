#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy: tests/tidy.sh BUILD          every source of the library, most of an hour on two cores
#                                            tests/tidy.sh BUILD FILE...  these sources
#                                            tests/tidy.sh BUILD headers  every header of the library, half a minute
# BUILD is a configured build folder. Exit status 1 with the findings, 77 where there is no clang-tidy.
set -euo pipefail
build=$(realpath -- "$1")
cd -- "$(dirname -- "$0")/.."
readonly build folders=(autograd nn attention book train)

tidy=
for version in '' -{20..14}; do
  [[ -n $tidy ]] || tidy=$(command -v "clang-tidy$version" || true)
done
if [[ -z $tidy ]]; then
  echo "tidy: skipped: there is no clang-tidy (Debian: clang-tidy)"
  exit 77
fi

# omp.h is the compiler's own: clang may have none.
omp=$(dirname -- "$("${CXX:-c++}" -print-file-name=include/omp.h)")
check() { # check FILE... -- the arguments of clang-tidy are in the array `options`
  echo "tidy: $# files"
  printf '%s\0' "$@" | xargs -0 -I{} -P "$(nproc)" "$tidy" --config-file=.clang-tidy --quiet {} "${options[@]}" || {
    echo "tidy: see above; .clang-tidy says which checks are off and why"
    exit 1
  }
}

if [[ ${2-} == headers ]]; then
  # Kernels' own headers belong to one instruction set and are seen with their sources; MPI's header may not be there.
  find "${folders[@]}" -name '*.h' ! -path '*/mpi/*' ! -path '*/kernels/*' | sort | sed 's/.*/#include "&"/' >"$build/all_headers.cpp"
  options=(-- -std=c++20 -fopenmp -I. "-idirafter$omp")
  check "$build/all_headers.cpp"
else
  files=("${@:2}")
  ((${#files[@]})) || mapfile -t files < <(find "${folders[@]}" -name '*.cpp' | sort)
  options=(-p "$build" "--extra-arg=-idirafter$omp")
  check "${files[@]}"
fi
