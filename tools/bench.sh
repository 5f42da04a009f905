# shellcheck shell=bash

# What the peers need, and what measures: not a part of `setup`.
bench_packages=(redis-server task-spooler slurmctld slurmd slurm-client munge tmux wrk valgrind)

cmd_bench() {
  setup_to_test
  setup_packages "${bench_packages[@]}"
  build release
  mkdir -p build/log
  build_wheel >build/log/build-python.log 2>&1 || die "the Python package does not build (build/log/build-python.log)"
  exec .venv/bin/python tests/bench/run.py "$@"
}
