# The image of all programs. `make image` builds it; docs/image.md says how to get it into a cluster.
#
# The base needs Python 3.11 or newer with pip, and ldd; it gives the interpreter. What is not needed at run time,
# a shell and pip among it, stays behind: the image is begun from nothing. Its digest names one content for all times;
# `make base` renews it.
ARG BASE=docker.io/library/python:3.11-slim@sha256:0dd364ba7e10242f07755449e3a3d0e35f9efd987952737b90def6709ab0c5ce

FROM ${BASE} AS build
ARG SOURCE_DATE_EPOCH=0
# Where pip fetches from, for whoever has no way to the Python Package Index (see docs/image.md). Everything is known by its hash.
# What is empty pip takes for not said.
ARG PIP_INDEX_URL=
ARG PIP_FIND_LINKS=
ARG PIP_NO_INDEX=
ENV PIP_QUIET=1 HATCH_QUIET=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
WORKDIR /source
COPY image image
RUN python3 -m venv --without-pip /build && python3 -m venv --without-pip /opt/gpushare \
 && python3 -m pip --python /build/bin/python install --require-hashes --only-binary :all: --no-compile \
      -r image/build.lock \
 && python3 -m pip --python /opt/gpushare/bin/python install --require-hashes --only-binary :all: --no-compile \
      -r image/requirements.lock
# The library that holds a container to its share of a card, for nodes of either architecture. Seldom changes: before the rest.
COPY hook hook
RUN for machine in x86_64 aarch64; do \
      hook/build.sh "/build/bin/python -m ziglang cc -target $machine-linux-gnu" \
        /usr/share/gpushare/hook/$machine/libgpushare-cuda.so || exit 1; \
    done
COPY . .
RUN /build/bin/python -m hatchling build --target wheel --directory /wheel \
 && (cd cli && /build/bin/python -m hatchling build --target wheel --directory /wheel) \
 && python3 -m pip --python /opt/gpushare/bin/python install --no-deps --no-index --no-compile /wheel/*.whl \
 && /opt/gpushare/bin/python image/root_filesystem.py \
 && /opt/gpushare/bin/python image/sbom.py \
 && find /rootfs -exec touch --no-dereference --date=@${SOURCE_DATE_EPOCH} {} +

# `--target sbom --output DIRECTORY`: the bill of materials by itself.
FROM scratch AS sbom
COPY --from=build /rootfs/product/usr/share/gpushare/sbom.json /

FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="gpushare" \
      org.opencontainers.image.description="Share GPU cards between pods on Kubernetes, correctly" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# From what seldom changes to what every version changes: an upgrade fetches the last layer.
COPY --from=build /rootfs/base/ /
COPY --from=build /rootfs/dependencies/ /
COPY --from=build /rootfs/product/ /
ENV PATH=/opt/gpushare/bin LANG=C.UTF-8 PYTHONUNBUFFERED=1
# By number, or the kubelet could not tell that it is not root.
USER 65532:65532
CMD ["gpushare-operator", "--help"]
