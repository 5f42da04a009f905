# shellcheck shell=bash
# The queue of a lab with versions of etcd that Debian 12 does not have, made from the registry of
# Go modules.

# The newest of each line. 3.4 is Debian's.
etcd_versions=(3.5.35 3.6.16 3.7.3)

go_program() {
  PATH=$PATH:/usr/local/go/bin command -v go ||
    die "etcd is made with Go 1.26 or newer, which is no package of Debian 12: unpack it from https://go.dev/dl into /usr/local"
}

# make_etcd VERSION: build/etcd/VERSION/etcd. `go install` takes no module that replaces others, as
# etcd's does. So a module of our own requires it, and what etcd replaces by its neighbours comes
# from the registry, in the same version.
make_etcd() (
  folder=build/etcd/$1
  [[ ! -x $folder/etcd ]] || return 0
  go=$(go_program) || return 1
  export GOFLAGS=-mod=mod
  rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" &&
    "$go" mod init etcd.local &&
    "$go" get "go.etcd.io/etcd/server/v3@v$1" &&
    "$go" build -o etcd.made go.etcd.io/etcd/server/v3 &&
    mv etcd.made etcd
)

# Debian's first. Not a part of the whole: it takes minutes for each of them.
run_part_etcd() {
  check build-release build release || return 0
  program_tests program-etcd release -m store
  local version
  for version in "${etcd_versions[@]}"; do
    check "build-etcd-$version" make_etcd "$version" || continue
    BERTH_ETCD=$PWD/build/etcd/$version/etcd program_tests "program-etcd-$version" release -m store
  done
}
