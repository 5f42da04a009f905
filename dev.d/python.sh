# shellcheck shell=bash
# The Python package, as a user gets it: a wheel, installed into an environment that has nothing else.

# build_wheel [PYTHON]: leaves build/python/VERSION with it installed. The default interpreter's is built where the
# release build is, whose objects it shares.
build_wheel() {
  local python=${1:-.venv/bin/python} version folder build_dir=build/release
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  folder=build/python/$version
  (($#)) && build_dir=build/release-$version
  if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  rm -rf "$folder" && mkdir -p "$folder" &&
    .venv/bin/pip wheel -q --no-build-isolation --no-deps --no-index -w "$folder/wheel" \
      --config-settings "build-dir=$build_dir" --config-settings cmake.define.BUILD_TESTING=ON . &&
    "$python" -m venv --without-pip "$folder/env" &&
    .venv/bin/pip --python "$folder/env/bin/python" install -q --disable-pip-version-check --no-index --no-deps "$folder"/wheel/*.whl &&
    ln -sfn "$version" build/python/current || return 1
  # The build is ours again: what was made for the wheel is not where `cmake --install` shall put it.
  (($#)) || cmake -S . -B "$build_dir" -DCMAKE_INSTALL_PREFIX=/usr/local
}

# build_dropin_wheel: an environment with both distributions, and with what .venv has (Flask).
build_dropin_wheel() {
  local folder=build/python/current/dropin
  rm -rf "$folder" && mkdir -p "$folder" &&
    .venv/bin/pip wheel -q --no-build-isolation --no-deps --no-index -w "$folder/wheel" ./dropin &&
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
  program_tests program-python release -m python
}
