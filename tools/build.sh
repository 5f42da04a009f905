# shellcheck shell=bash

# What is precompiled is told by its content.
use_ccache() {
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
}

# Where warnings are to be errors, a build that does not take them so is configured again.
is_configured() {
  [[ -f build/$1/build.ninja ]] &&
    { [[ -z ${BERTH_WERROR-} ]] || grep -q "^BERTH_WERROR:.*=$BERTH_WERROR\$" "build/$1/CMakeCache.txt"; }
}

# build [PRESET [TARGET…]]: when all is well, it says only how far it is, every ten seconds.
build() {
  local preset=${1:-release}
  shift || true
  local log=build/log/build-$preset.log
  mkdir -p build/log
  if command -v ccache >/dev/null; then
    use_ccache
  fi
  {
    { is_configured "$preset" || cmake --preset "$preset"; } >"$log" 2>&1 &&
      /usr/bin/python3 tools/progress.py "build/$preset" "$log" "$@" -- \
        cmake --build --preset "$preset" ${1:+--target "$@"}
  } || {
    grep -E -A 12 'error:|^FAILED|CMake Error' "$log" | head -n 80 >&2 || tail -n 40 "$log" >&2
    printf 'the %s build failed; all of it is in %s\n' "$preset" "$log" >&2
    return 1
  }
}
