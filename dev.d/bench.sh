# shellcheck shell=bash

cmd_bench() {
  setup_to_test
  build release
  mkdir -p build/log
  build_wheel >build/log/build-python.log 2>&1 || die "the Python package does not build (build/log/build-python.log)"
  /usr/bin/python3 bench/run.py "$@"
}
