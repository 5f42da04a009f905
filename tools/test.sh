# shellcheck shell=bash
# Every step leaves a log and one file of results; report.py adds them up.

begin_report() {
  rm -rf build/results
  mkdir -p build/results build/log
}

end_report() { /usr/bin/python3 tools/report.py build/results; }

# step NAME COMMAND…: one line on the terminal, the whole in build/log/NAME.log, the log's end when
# it fails.
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
  local status=0
  step "$@" || status=$?
  if ((status == 0)); then echo passed 1; else echo failed 1; fi >"build/results/$1.count"
  return "$status"
}

# Sanitizers of GCC 12 lose their way when the kernel spreads addresses widely.
without_aslr() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

unit_tests() {
  local preset=$1
  shift
  local log=build/log/unit-$preset.log
  step "unit-$preset" without_aslr ctest --test-dir "build/$preset" -L unit -j "$(nproc)" --no-tests=error -V "$@" || true
  cp "$log" "build/results/unit-$preset.doctest"
}

# while_heard SECONDS LOG COMMAND…: ends a command, and all that it has started, that adds nothing
# to its log for so long. How long the whole takes is the machine's affair.
while_heard() {
  local patience=$1 log=$2 command
  shift 2
  # With a process group of its own.
  set -m
  "$@" &
  command=$!
  set +m
  while kill -0 "$command" 2>/dev/null; do
    if (($(date +%s) - $(stat -c %Y "$log") > patience)); then
      printf '\nnothing was heard for %d s\n' "$patience"
      kill -- "-$command"
      sleep 10
      kill -KILL -- "-$command" 2>/dev/null
      break
    fi
    sleep 0.2
  done
  wait "$command"
}

# on_tests PYTEST ARGUMENT…: what a file of tests is made of is kept beside it. Without that each
# worker of each part makes it anew, in 8 s of processor time.
on_tests() { without_aslr env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest "$@"; }

# program_tests NAME PRESET [PYTEST ARGUMENT…]: the black box. What a sanitized build cannot do (be
# loaded by a foreign program, be counted) is marked release_only. Its tests wait most of the time,
# so several go on a processor. `suite`: where they are.
program_tests() {
  local name=$1 preset=$2
  shift 2
  # shellcheck disable=SC2086 # several paths
  BERTH_BUILD=$PWD/build/$preset step "$name" while_heard "${longest_s:-900}" "build/log/$name.log" \
    on_tests ${suite:-tests} -q -rs -n "$((${per_processor:-2} * $(nproc)))" --dist loadfile --no-loadscope-reorder \
    --junitxml="build/results/$name.xml" "$@" || true
  [[ -f build/results/$name.xml ]] || printf 'failed 1\n' >"build/results/$name.count"
}

# marked MARK: the files with tests that have it, and folders whose tests all do. A worker reads all
# files that it is given, in 2 s of processor time if these are all.
marked() {
  grep -rlE "mark\.$1\b" tests --include='*_test.py' --include=conftest.py | sed 's|/conftest.py$||'
}

# The documents as a site, made once for all that looks at it.
make_site() {
  if [[ ! -e build/results/site.count ]]; then check site build_site .venv/bin/python || return 0; fi
  export BERTH_SITE=$PWD/build/docs
}

run_part_release() {
  check build-release build release all unit_tests || return 0
  unit_tests release
  program_tests program-release release -m "not package and not python and not lasting"
}

# Most of it goes to random histories: fewer and shorter ones here. The release build goes through
# all of them.
unit_tests_debug() { RC_PARAMS="max_size=50 max_success=50" unit_tests debug; }
# At its end nothing else computes.
program_tests_debug() {
  per_processor=3 program_tests program-debug debug -m "not package and not python and not release_only and not lasting"
}

run_part_debug() {
  run_part_sanitized
  if grep -qx 'passed 1' build/results/build-debug.count; then program_tests_debug; fi
}

# The unit tests, and the inputs that the readers of foreign text were fed.
run_part_sanitized() {
  check build-debug build debug all unit_tests || return 0
  unit_tests_debug
}

# The agent and the hub under load, a report ends them. Not a part of the whole: the build alone
# takes two minutes.
run_part_threads() {
  # What the part tsan has linked there would be taken for built.
  find build/tsan -maxdepth 2 -type l -name 'berth*' -delete 2>/dev/null
  check build-threads build tsan berth berth-serve simulator other_clock slow_names || return 0
  # A name service that is preloaded comes before TSan itself.
  suite=tests/serve TSAN_OPTIONS=halt_on_error=1 program_tests program-threads tsan -m "not release_only" \
    -k "not looked_up_for_ever"
}

# Berth starts no thread; the hosts of its library do. Only such a host is watched: the program that
# it starts, and the simulated machine, are those of the release build.
run_part_tsan() {
  check build-release build release berth simulator || return 0
  tests_under_tsan
}

tests_under_tsan() {
  check build-tsan build tsan berth_api_test || return 0
  ln -sf ../release/berth build/tsan/berth && ln -sf ../../release/sim/berth-sim build/tsan/sim/berth-sim
  unit_tests tsan -R '^api$'
}

# Not a part of the whole: it compiles each source that an example of docs/adding.md changes.
run_part_adding() { suite=tests/adding program_tests program-adding release; }

# Where that is forgotten, each new clone searches the model anew.
run_part_model() {
  check model tests/model/run "${1:---quick}" || true
  [[ -z $(git status --porcelain -- tests/model/checked 2>/dev/null) ]] ||
    say "  the model has changed and holds: commit tests/model/checked with it"
}

run_part_text() {
  check lint-format lint_format || true
  check lint-shell lint_shell || true
  check lint-python lint_python || true
  check lint-page lint_page || true
}

run_part_lint() {
  run_part_text
  check lint-tidy lint_tidy "$@" || true
}

# Not a part of the whole: it is a build of its own, of ten minutes.
run_part_each() { check lint-each lint_each || true; }

run_part_package() {
  make_site
  check package make_packages release || return 0
  suite=$(marked package) program_tests program-package release -m "package and not wheels and not containers"
}

# The recipes for containers, by Debian's engines. Not a part of the whole: these take 300 MB.
run_part_containers() {
  setup_packages docker.io docker-compose podman crun catatonit uidmap slirp4netns debootstrap
  make_site
  check package make_packages release || return 0
  [[ -e build/containers/base.tar ]] || check container-base make_container_base || return 0
  program_tests program-containers release -m containers
}

# In place of debian:12-slim, which only a registry has. With what this machine trusts, and asks for
# its packages.
make_container_base() {
  local folder=build/containers/base
  rm -rf "$folder" && mkdir -p build/containers
  debootstrap --variant=minbase --include=ca-certificates bookworm "$folder" &&
    cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/" &&
    tar -C "$folder" -cf build/containers/base.tar.new . &&
    mv build/containers/base.tar.new build/containers/base.tar && rm -rf "$folder"
}

# What looks at the GPUs of a thousand runs. Not a part of the whole: it waits some minutes.
run_part_runs() {
  check build-release build release berth simulator || return 0
  suite=tests/run program_tests program-runs release -m lasting
}

# What ./dev package leaves, and what the README installs from the sources, used as its users would.
# Not a part of the whole: it compiles half an hour and more.
run_part_wheels() {
  check build-release build release || return 0
  # The programs for another kind of processor run by qemu.
  setup_packages qemu-user-static libc6-arm64-cross debootstrap
  check package-all ./dev package || return 0
  # One of them compiles Berth.
  longest_s=7200 program_tests program-wheels release -m wheels
}

# The whole, with one build, the one that ships, and in lanes: tests of the program wait most of the
# time, and beside them whatever computes is built and looked at, at a lower priority. CI runs the
# part sanitized too. `./dev test --all` also runs the tests of the program under the sanitizers, a
# host with threads under TSan, clang-tidy, which reads as long as half a build takes, and each
# source by itself.
run_part_whole() {
  check build-release build release || return 0
  compute_beside &
  local beside=$!
  # Once, and not by all workers at the same time.
  BERTH_BUILD=$PWD/build/release step read-tests on_tests tests --collect-only -qq || true
  program_tests program-release release -m "not package and not python and not lasting"
  # These build there too, and two do not do that at once.
  while [[ ! -e build/results/build-tests.count ]] && kill -0 "$beside" 2>/dev/null; do sleep 1; done
  run_part_python
  run_part_package
  # Not by its pid: bash may have forgotten it if it ended while another had job control.
  wait
}

compute_beside() {
  renice -n 5 -p "$BASHPID" >/dev/null
  # Nothing that is compiled goes into the model. It keeps one core busy.
  run_part_model --changed &
  if check build-tests build release unit_tests; then unit_tests release; fi
  run_part_text
  wait
}

cmd_test() {
  local parts=("$@") part
  if [[ ${1-} == --all ]]; then parts=(whole debug model tsan lint each); fi
  for part in "${parts[@]}"; do
    declare -F "run_part_$part" >/dev/null || die "no such part: $part"
  done
  setup_to_test
  begin_report
  export BERTH_WERROR=ON
  trap 'trap - INT TERM; kill 0' INT TERM
  if ((${#parts[@]})); then
    for part in "${parts[@]}"; do "run_part_$part"; done
  else
    run_part_whole
  fi
  end_report
}
