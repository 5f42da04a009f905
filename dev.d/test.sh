# shellcheck shell=bash
# Every step leaves a log and one file of results; report.py adds them up.

begin_report() {
  rm -rf build/results
  mkdir -p build/results build/log
}

end_report() { /usr/bin/python3 dev.d/report.py build/results; }

# step NAME COMMAND…: one line on the terminal, the whole in build/log/NAME.log, the log's end when it fails.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"build/log/$name.log" 2>&1 || status=$?
  if ((status == 0)); then
    printf '  %-22s ok %5ds\n' "$name" $((SECONDS - start))
    return 0
  fi
  printf '  %-22s FAILED %ds (build/log/%s.log)\n' "$name" $((SECONDS - start)) "$name"
  tail -n "${lines_shown:-60}" "build/log/$name.log" | sed 's/^/    | /'
  return "$status"
}

# A step that is itself one check.
check() {
  local outcome=passed
  step "$@" || outcome=failed
  printf '%s 1\n' "$outcome" >"build/results/$1.count"
}

# Sanitizers of GCC 12 lose their way when the kernel spreads addresses widely.
without_aslr() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

unit_tests() {
  local preset=$1
  local log=build/log/unit-$preset.log
  step "unit-$preset" without_aslr ctest --test-dir "build/$preset" -L unit -j "$(nproc)" --no-tests=error -V || true
  cp "$log" "build/results/unit-$preset.doctest"
}

# program_tests NAME PRESET [PYTEST ARGUMENT…]: the black box. What a sanitized build cannot do (be loaded by a
# foreign program, be counted) is marked release_only.
program_tests() {
  local name=$1 preset=$2
  shift 2
  BERTH_BUILD=$PWD/build/$preset step "$name" without_aslr .venv/bin/python -m pytest tests -q -rs \
    --junitxml="build/results/$name.xml" "$@" || true
  [[ -f build/results/$name.xml ]] || printf 'failed 1\n' >"build/results/$name.count"
}

run_part_release() {
  check build-release build release
  unit_tests release
  program_tests program-release release -m "not package"
}

run_part_debug() {
  check build-debug build debug
  unit_tests debug
  program_tests program-debug debug -m "not package and not release_only"
}

run_part_tsan() {
  check build-tsan build tsan
  unit_tests tsan
}

run_part_lint() {
  check lint-format lint_format
  check lint-shell lint_shell
  check lint-python lint_python
  check lint-tidy lint_tidy "$@"
}

run_part_package() {
  check package make_packages
  program_tests program-package release -m package
}

cmd_test() {
  local parts=("$@") part
  ((${#parts[@]})) || parts=(release lint package debug tsan)
  for part in "${parts[@]}"; do
    declare -F "run_part_$part" >/dev/null || die "no such part: $part"
  done
  setup_to_test
  begin_report
  for part in "${parts[@]}"; do "run_part_$part"; done
  end_report
}
