# shellcheck shell=bash

cmd_bench() {
  setup_to_test
  build release
  /usr/bin/python3 bench/run.py "$@"
}
