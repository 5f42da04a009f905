# shellcheck shell=bash
# The Python package, as a user gets it: a wheel, installed into an environment that has nothing
# else.

# install_wheel TOOLS PYTHON: leaves build/python/VERSION/env with it. TOOLS is an environment that
# has what pyproject.toml asks for. It is built where the release build is, whose objects it shares.
install_wheel() {
  local tools=$1 python=$2 version folder
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  folder=build/python/$version
  if command -v ccache >/dev/null; then
    use_ccache
  fi
  # Another name for the same compiler, as an interpreter may suggest it, would make all of the
  # build anew.
  export CC=${CC:-cc} CXX=${CXX:-c++}
  rm -rf "$folder/wheel" "$folder/env" && mkdir -p "$folder" &&
    "$tools/bin/pip" wheel -q --disable-pip-version-check --no-build-isolation --no-deps --no-index -w "$folder/wheel" \
      --config-settings build-dir=build/release --config-settings cmake.define.BUILD_TESTING=ON \
      --config-settings cmake.define.BERTH_SERVE=ON . &&
    "$python" -m venv --without-pip "$folder/env" &&
    "$tools/bin/pip" --python "$folder/env/bin/python" install -q --disable-pip-version-check --no-index --no-deps \
      "$folder"/wheel/*.whl || return 1
  # The build is ours again: where the wheel was made is not where `cmake --install` shall put
  # things.
  cmake -S . -B build/release -DCMAKE_INSTALL_PREFIX=/usr/local
}

# The interpreter of the tests is that of .venv.
build_wheel() {
  install_wheel .venv .venv/bin/python &&
    ln -sfn "$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" build/python/current
}

# build_dropin_wheel: an environment with both distributions, and with what .venv has (Flask).
build_dropin_wheel() {
  local folder=build/python/current/dropin
  rm -rf "$folder" && mkdir -p "$folder" &&
    .venv/bin/pip wheel -q --no-build-isolation --no-deps --no-index -w "$folder/wheel" ./python/dropin &&
    .venv/bin/python -m venv --without-pip "$folder/env" &&
    .venv/bin/pip --python "$folder/env/bin/python" install -q --disable-pip-version-check --no-index --no-deps \
      build/python/current/wheel/*.whl "$folder"/wheel/*.whl &&
    .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
      >"$("$folder/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/venv.pth"
}

run_part_python() {
  check build-release build release || return 0
  check build-python build_wheel || return 0
  check build-dropin build_dropin_wheel || return 0
  suite=$(marked python) program_tests program-python release -m python
}

# Tools of its own for another interpreter, from PyPI.
python_tools() {
  local python=$1 folder=$2
  "$python" -m venv "$folder" &&
    grep -E '^(scikit-build-core|nanobind|wheel|mkdocs|mkdocs-material)==' tests/requirements.txt \
      >"$folder/requirements.txt" &&
    "$folder/bin/pip" install -q --disable-pip-version-check -r "$folder/requirements.txt" typing_extensions
}

# The same tests with other interpreters. Not a part of `test`, which asks nothing of the network.
cmd_python() {
  local python version
  (($#)) || die "which interpreters? ./dev python python3.9 python3.13"
  setup_to_test
  begin_report
  for python in "$@"; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    check "tools-$version" python_tools "$python" "build/python/$version/tools" || continue
    check "build-python-$version" install_wheel "build/python/$version/tools" "$python" || continue
    BERTH_PYTHON_ENV=$PWD/build/python/$version/env program_tests "program-python-$version" release -m python --ignore=tests/dropin
  done
  end_report
}
