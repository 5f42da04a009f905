# shellcheck shell=bash

cxx_files() { git ls-files '*.cpp' '*.h' '*.c'; }
shell_files() { printf '%s\n' dev tools/*.sh tools/hardware/run .ci/run clients/sh/*; }

lint_format() { cxx_files | xargs -r clang-format-19 --dry-run -Werror; }

# All sources, a room at once: that reads each header once a room. Named files are read one by one.
# Headers are checked through the sources that include them.
lint_tidy() {
  local file
  if (($#)); then
    cmake --preset each >/dev/null || return
    for file; do
      if ! grep -qF "\"$PWD/$file\"" build/each/compile_commands.json; then
        echo "no source of Berth: $file"
        return 1
      fi
    done
    run-clang-tidy-19 -quiet -p build/each -j "$(nproc)" "${@/#/^$PWD/}"
  else
    cmake --preset lint >/dev/null && grep -q berth_base.dir/Unity build/lint/compile_commands.json &&
      run-clang-tidy-19 -quiet -p build/lint -j "$(nproc)" '/(berth_[a-z_]+|sim_(machine|nvml|cuda))\.dir/Unity/'
  fi
}

lint_shell() { shell_files | xargs shellcheck -x; }
# Types, checks and layout of the page.
lint_page() (
  cd web && node() { ../.node/bin/node "node_modules/.bin/$1" "${@:2}"; } && node tsc && node biome ci --colors=off .
)

lint_python() { .venv/bin/ruff check -q . && .venv/bin/ruff format -q --check .; }

# What a room compiled at once does not tell: that each source includes what it uses, and the
# warnings that are off where headers are precompiled. Not a part of the whole, for it is a build of
# its own.
lint_each() { BERTH_WERROR=ON build each; }

cmd_lint() {
  setup_to_test
  begin_report
  if [[ ${1-} == --each ]]; then
    run_part_each
  else
    run_part_lint "$@"
  fi
  end_report
}

cmd_format() {
  setup_to_test
  cxx_files | xargs -r clang-format-19 -i
  .venv/bin/ruff format -q .
  (cd web && ../.node/bin/node node_modules/.bin/biome check --write --colors=off .)
}
