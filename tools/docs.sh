# shellcheck shell=bash

# build_site PYTHON: the pages of docs/ as a site. A broken link, a missing anchor or a page that is
# in no menu is an error.
build_site() {
  # mkdocs-material tells at each build of its successor; docs/dependencies.md does so too.
  NO_MKDOCS_2_WARNING=1 "$1" -m mkdocs build --strict --quiet
}

cmd_docs() {
  setup_to_test
  build_site .venv/bin/python
  say build/docs/index.html
}
