#!/usr/bin/env bash
# Builds an image with docker or buildah, whichever works here. `make image` and `make scheduler-image` call it; so do their tests.
#   build.sh                     the image of all programs
#   build.sh scheduler [1.36.3]  that of our kube-scheduler, of a version of Kubernetes
# Variables:
#   IMAGE    name and tag of the image of all programs; that of our kube-scheduler follows from the name
#   BASE     the image that gives the interpreter (see Dockerfile); empty for the Dockerfile's own
#   BUILDER  docker or buildah; empty for the one that works
#   SBOM     the folder that gets its bill of materials, sbom.json; empty for build/
#   ARCHIVE  a file that the image is written to as well, as `docker save` writes it
#   IMAGE_ARGS  further arguments of the builder, such as --no-cache or --platform
#   PYTHON   for build.sh scheduler: Python with the packages of the development environment
#   GOARCH   for build.sh scheduler: arm64 or amd64, if it is not for machines as this one
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

build() {
  case $builder in
    docker) docker buildx build "${arguments[@]}" "$@" ;;
    # What it prints quietly are identities; what goes wrong comes by the other way.
    buildah) buildah build --quiet "$layers" --timestamp "$SOURCE_DATE_EPOCH" "${arguments[@]}" "$@" >/dev/null ;;
    *)
      echo "BUILDER is '$builder'; say docker or buildah" >&2
      return 1
      ;;
  esac
}

# Arguments: the image's name and tag, then those of the builder.
build_image() {
  local image=$1
  shift
  case $builder in
    docker)
      build --load --tag "$image" "$@"
      [ -z "${ARCHIVE:-}" ] || docker save --output "$ARCHIVE" "$image"
      ;;
    *)
      build --tag "$image" "$@"
      [ -z "${ARCHIVE:-}" ] || buildah push --quiet "$image" "docker-archive:$ARCHIVE:$image"
      ;;
  esac
  echo "built $image"
}

all_programs() {
  local image=${IMAGE:-gpushare:$version} name
  [ -z "${BASE:-}" ] || arguments+=(--build-arg "BASE=$BASE")
  for name in PIP_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX; do
    [ -z "${!name:-}" ] || arguments+=(--build-arg "$name=${!name}")
  done
  echo "building $image with $builder: one to three minutes"
  build --target sbom --output type=local,dest="$sbom" .
  build_image "$image" .
  echo "what it consists of: $sbom/sbom.json"
}

scheduler() {
  local name=${IMAGE:-gpushare} root kubernetes minor
  # As the operator names it: beside the image that it runs itself, whatever tag or digest that has.
  name=${name%%@*}
  case ${name##*/} in *:*) name=${name%:*} ;; esac
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  # Below it: it is for nobody else, and the image's root is for all.
  root=$scratch/root
  kubernetes=$(SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH "${PYTHON:-python3}" image/scheduler_root.py "$root" "$@")
  minor=${kubernetes#v}
  minor=${minor%.*}
  # There is one layer, and no step to save: what buildah keeps of steps would be in the image's history.
  layers=--layers=false
  [ -z "${GOARCH:-}" ] || arguments+=(--platform "linux/$GOARCH")
  arguments+=(--build-arg "KUBERNETES=$kubernetes")
  build_image "$name-scheduler:$version-$minor" --file image/scheduler.Dockerfile "$root"
  cp "$root/usr/share/gpushare/sbom.json" "$sbom/sbom-scheduler-$minor.json"
  echo "what it consists of: $sbom/sbom-scheduler-$minor.json"
}

layers=--layers
builder=${BUILDER:-$(find_builder)}
version=$(sed -n 's/^VERSION = "\(.*\)"/\1/p' core/gpushare_core/process/version.py)
# Outside of a checkout there is no commit: 1980 is the first year that archives can say.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
sbom=${SBOM:-build}
mkdir -p "$sbom"

arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision"
  --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH")
# shellcheck disable=SC2206  # words, as in a Makefile
arguments+=(${IMAGE_ARGS:-})

case ${1:-} in
  "") all_programs ;;
  scheduler) scheduler "${@:2}" ;;
  *)
    echo "there is no image '$1'; say nothing, or scheduler" >&2
    exit 1
    ;;
esac
