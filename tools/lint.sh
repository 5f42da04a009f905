# shellcheck shell=bash

cxx_files() { git ls-files '*.cpp' '*.h' '*.c'; }
shell_files() { printf '%s\n' dev tools/*.sh .ci/run; }

lint_format() { cxx_files | xargs -r clang-format-19 --dry-run -Werror; }

# All sources, a layer at once: that reads each header once a layer. Named files are read one by one, as the
# release build compiles them. Headers are checked through the sources that include them.
lint_tidy() {
  if (($#)); then
    run-clang-tidy-19 -quiet -p build/release -j "$(nproc)" "${@/#/^$PWD/}"
  else
    cmake --preset lint >/dev/null && grep -q berth_core.dir/Unity build/lint/compile_commands.json &&
      run-clang-tidy-19 -quiet -p build/lint -j "$(nproc)" '/(berth_[a-z_]+|sim_(machine|nvml|cuda))\.dir/Unity/'
  fi
}

lint_shell() { shell_files | xargs shellcheck -x; }
# Types, checks and layout of the page.
lint_page() (
  cd web && node() { ../.node/bin/node "node_modules/.bin/$1" "${@:2}"; } && node tsc && node biome ci --colors=off .
)

lint_python() { .venv/bin/ruff check -q . && .venv/bin/ruff format -q --check .; }

cmd_lint() {
  setup_to_test
  (($# == 0)) || build release
  begin_report
  run_part_lint "$@"
  end_report
}

cmd_format() {
  setup_to_test
  cxx_files | xargs -r clang-format-19 -i
  .venv/bin/ruff format -q .
  (cd web && ../.node/bin/node node_modules/.bin/biome check --write --colors=off .)
}
