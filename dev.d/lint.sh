# shellcheck shell=bash

cxx_files() { git ls-files '*.cpp' '*.h' '*.c'; }
shell_files() { printf '%s\n' dev dev.d/*.sh .ci/run; }

lint_format() { cxx_files | xargs -r clang-format-19 --dry-run -Werror; }

# Headers are checked through the sources that include them.
lint_tidy() {
  local files=("$@")
  ((${#files[@]})) || mapfile -t files < <(git ls-files '*.cpp' '*.c' ':!:*/test/*' ':!:tests' ':!:bench')
  run-clang-tidy-19 -quiet -p build/release -j "$(nproc)" "${files[@]/#/^$PWD/}"
}

lint_shell() { shell_files | xargs shellcheck -x; }
lint_python() { .venv/bin/ruff check -q . && .venv/bin/ruff format -q --check .; }

cmd_lint() {
  setup_to_test
  build release
  begin_report
  run_part_lint "$@"
  end_report
}

cmd_format() {
  setup_to_test
  cxx_files | xargs -r clang-format-19 -i
  .venv/bin/ruff format -q .
}
