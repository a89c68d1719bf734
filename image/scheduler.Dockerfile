# The image of our kube-scheduler. `make scheduler-image` builds it; docs/image.md says what it is for.
#
# There is no stage that compiles: image/scheduler_root.py does so before, on the machine that builds. Go makes the same bits
# everywhere, and fetches the exact compiler as a module, by a hash of Go's checksum database; an image of a compiler
# would be one more thing to trust, and needs a registry.
FROM scratch
ARG VERSION
ARG REVISION
ARG KUBERNETES
LABEL org.opencontainers.image.title="gpushare-scheduler" \
      org.opencontainers.image.description="kube-scheduler of Kubernetes ${KUBERNETES} with a plugin that knows GPU cards" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      io.gpushare.kubernetes="${KUBERNETES}"
COPY . /
ENV PATH=/usr/local/bin
# By number, or the kubelet could not tell that it is not root.
USER 65532:65532
CMD ["kube-scheduler", "--help"]
