# shellcheck shell=bash

# build_site [PYTHON]: the pages of docs/ as a site. A broken link, a missing anchor or a page that is in no menu is an error.
build_site() {
  local python=${1:-.venv/bin/python}
  # mkdocs-material tells at each build of its successor; docs/dependencies.md does so too.
  NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --quiet
}

cmd_docs() {
  setup_to_test
  build_site
  say build/docs/index.html
}
