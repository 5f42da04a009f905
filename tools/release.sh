# shellcheck shell=bash
# A release: all files, with their sums and what they were made of. It sends nothing anywhere.

# checked_tag TAG: the version, if the tag is of it and names what is checked out.
checked_tag() {
  local tag=$1 version
  version=$(sed -n 's/^project(berth VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  [[ $tag ]] || die "which tag? ./dev release v$version"
  [[ ${tag#v} == "$version" ]] || die "the tag $tag is not of version $version, which CMakeLists.txt names"
  grep -qx "## $version" CHANGELOG.md || die "CHANGELOG.md has no part ## $version"
  [[ $(git rev-parse -q --verify "refs/tags/$tag^{commit}") == "$(git rev-parse HEAD)" ]] ||
    die "there is no tag $tag of the commit that is checked out: git tag -a $tag"
  [[ -z $(git status --porcelain) ]] || die "some files differ from the commit: git status"
  echo "$version"
}

cmd_release() {
  local version
  version=$(checked_tag "${1-}")
  rm -rf dist
  package_all
  rm -rf dist/_CPack_Packages
  git archive --prefix="berth-$version/" -o "dist/berth-$version-sources.tar.gz" HEAD
  quietly release-made-of sh -c "/usr/bin/python3 tools/made_of.py '$1' >'dist/berth-$version.cdx.json'"
  (
    cd dist || exit
    sha256sum -- * >../build/SHA256SUMS
    mv ../build/SHA256SUMS .
  )
  say "" "sha256sum -c SHA256SUMS, in dist/:"
  (cd dist && sha256sum -c SHA256SUMS)
}
