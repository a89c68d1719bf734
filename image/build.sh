#!/usr/bin/env bash
# Builds the image with docker or buildah, whichever works here. `make image` calls it; so does its test.
#   IMAGE    its name and tag
#   BASE     the image that gives the interpreter (see Dockerfile); empty for the Dockerfile's own
#   BUILDER  docker or buildah; empty for the one that works
#   SBOM     the folder that gets its bill of materials, sbom.json; empty for build/
#   ARCHIVE  a file that the image is written to as well, as `docker save` writes it
#   IMAGE_ARGS  further arguments of the builder, such as --no-cache or --platform
set -euo pipefail
cd "$(dirname "$0")/.."

find_builder() {
  if docker info >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1; then
    echo docker
  elif command -v buildah >/dev/null; then
    echo buildah
  else
    echo "no image: docker has no engine or no buildx here, and there is no buildah;" \
      "start dockerd, or on Debian: apt-get install buildah" >&2
    return 1
  fi
}

builder=${BUILDER:-$(find_builder)}
version=$(sed -n 's/^VERSION = "\(.*\)"/\1/p' core/gpushare_core/process/version.py)
# Outside of a checkout there is no commit: 1980 is the first year that archives can say.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
image=${IMAGE:-gpushare:$version}

arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision"
  --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH")
[ -z "${BASE:-}" ] || arguments+=(--build-arg "BASE=$BASE")
for name in PIP_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX; do
  [ -z "${!name:-}" ] || arguments+=(--build-arg "$name=${!name}")
done
# shellcheck disable=SC2206  # words, as in a Makefile
arguments+=(${IMAGE_ARGS:-})

sbom=${SBOM:-build}
mkdir -p "$sbom"
echo "building $image with $builder: one to three minutes"
case $builder in
  docker)
    docker buildx build "${arguments[@]}" --target sbom --output type=local,dest="$sbom" .
    docker buildx build "${arguments[@]}" --load --tag "$image" .
    [ -z "${ARCHIVE:-}" ] || docker save --output "$ARCHIVE" "$image"
    ;;
  buildah)
    # What it prints quietly are identities; what goes wrong comes by the other way.
    arguments=(--quiet --layers --timestamp "$SOURCE_DATE_EPOCH" "${arguments[@]}")
    buildah build "${arguments[@]}" --target sbom --output type=local,dest="$sbom" . >/dev/null
    buildah build "${arguments[@]}" --tag "$image" . >/dev/null
    [ -z "${ARCHIVE:-}" ] || buildah push --quiet "$image" "docker-archive:$ARCHIVE:$image"
    ;;
  *)
    echo "BUILDER is '$builder'; say docker or buildah" >&2
    exit 1
    ;;
esac
echo "built $image"
echo "what it consists of: $sbom/sbom.json"
