# shellcheck shell=bash disable=SC2154 # what cross.sh sets
# What people install.

# make_packages PRESET: the tarball and the Debian package for this machine, with the site that
# build_site has left.
make_packages() {
  local preset=$1
  build "$preset" && rm -rf dist && (cd "build/$preset" && cpack) && ls -l dist
}

# What a type checker reads of the extension is what it says of itself. All extensions say the same,
# and this machine can load one.
write_stub() {
  "$cross/tools/bin/python" -m nanobind.stubgen -q -m _berth -i "$cross/$(uname -m)/build/python/berth" -o "$cross/_berth.pyi"
}

# make_wheel MACHINE: all extensions in one wheel, whose tag fits each CPython since 3.9.
make_wheel() {
  local machine=$1 work=$cross/$1/wheel version=${cross_glibc[$1]/./_} library licence name
  local options=(--tag "cp39-abi3-manylinux_${version}_$machine")
  # An older pip knows only this name of it.
  [[ $version != 2_17 ]] || options+=(--tag "cp39-abi3-manylinux2014_$machine")
  if [[ $machine == "$(uname -m)" ]]; then
    cmake --install build/package --component library --prefix "$cross/$machine/installed"
  fi
  for name in libboost1.81-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev; do
    options+=(--notice "$name=/usr/share/doc/$name/copyright")
  done
  for licence in "$cross"/sources/{openssl-src-*/openssl/LICENSE.txt,libz-sys-*/src/zlib/LICENSE}; do
    library=${licence#"$cross/sources/"}
    options+=(--notice "${library%%-[0-9]*}=$licence")
  done
  options+=(--notice "nanobind=$(echo "$cross"/tools/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE)")
  cross_environment "$machine"
  "$cross/tools/bin/python" tools/wheel.py "${options[@]}" --installed "$cross/$machine/installed" \
    --extensions "$cross/$machine/build/python/berth" --stub "$cross/_berth.pyi" --work "$work" --out dist
}

make_dropin_wheel() {
  "$cross/tools/bin/pip" wheel -q --no-build-isolation --no-deps --no-index -w dist ./python/dropin
}

# For all machines.
package_all() {
  local machine
  setup_to_package
  mkdir -p "$cross"
  once tools 'packaging/cross/tools.txt tests/requirements.txt' cross-tools cross_tools
  quietly package-site build_site "$cross/tools/bin/python"
  quietly package-native make_packages package
  cross_compile
  quietly package-stub write_stub
  for machine in "${cross_machines[@]}"; do
    quietly "package-wheel-$machine" make_wheel "$machine"
  done
  quietly package-dropin make_dropin_wheel
  printf '%s\n' dist/*.tar.gz dist/*.deb dist/*.whl
}

# package_one KIND [PYTHON]: one file, for this machine, out of the release build. PYTHON: whose
# wheel.
package_one() {
  local kind=$1 python version tools
  python=$(command -v "${2:-python3}") || die "there is no ${2:-python3}"
  setup_packages "${build_packages[@]}" "${unit_test_packages[@]}" "${package_packages[@]}" python3-dev
  setup_page
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  tools=build/python/$version/tools
  mkdir -p "$cross" dist
  [[ -d $tools ]] || rm -f "$cross/tools-$version.made"
  once "tools-$version" tests/requirements.txt "tools-$version" python_tools "$python" "$tools"
  quietly site build_site "$tools/bin/python"
  build release
  if [[ $kind == wheel ]]; then
    quietly extension install_wheel "$tools" "$python"
    quietly wheel make_wheel_here "$tools" "build/python/$version"
  elif [[ $kind == deb ]]; then
    quietly deb cpack --config build/release/CPackConfig.cmake -G DEB
  else
    quietly tar cpack --config build/release/CPackConfig.cmake -G TGZ
  fi
  rm -rf dist/_CPack_Packages
  find dist -newer build/log/site.log -type f
}

# make_wheel_here TOOLS FOLDER: what FOLDER/wheel lacks comes out of the release build.
make_wheel_here() {
  local tools=$1 folder=$2 options=() name built
  built=$(basename "$folder"/wheel/*.whl .whl)
  for name in libboost1.81-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libsqlite3-dev zlib1g-dev; do
    options+=(--notice "$name=/usr/share/doc/$name/copyright")
  done
  options+=(--notice "nanobind=$(echo "$tools"/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE)")
  rm -rf "$folder/installed"
  cmake --install build/release --prefix "$folder/installed"
  # Its name ends with the tag.
  "$tools/bin/python" tools/wheel.py --tag "${built#*-*-}" --installed "$folder/installed" "${options[@]}" \
    --extensions build/release/python/berth --stub build/release/python/extension/_berth.pyi \
    --work "$folder/work" --out dist
  "$tools/bin/pip" wheel -q --no-build-isolation --no-deps --no-index -w dist ./python/dropin
}

cmd_package() {
  case ${1-} in
    '') package_all ;;
    tar | deb | wheel) package_one "$@" ;;
    *) die "no such package: $1 (tar, deb or wheel, for this machine; without a word: all)" ;;
  esac
}
