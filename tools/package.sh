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

cmd_package() {
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
