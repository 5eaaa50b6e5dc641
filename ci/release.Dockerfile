# SPDX-License-Identifier: MIT
# stepgate in a container, of a release: ci/jobs/pack writes this as Dockerfile beside the tarball, with its name. `docker build DIR`
# there; of a release with CUDA by --build-arg BASE=nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04, and run with --gpus all.
# No registry was asked for these images yet; ci/jobs/pack tries what is added to them.
ARG BASE=debian:12-slim
FROM ${BASE}
ARG RELEASE=
ADD ${RELEASE}.tar.gz /opt
RUN ln -s ${RELEASE} /opt/stepgate
ENV PATH=/opt/stepgate/bin:${PATH} NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
ENTRYPOINT ["/opt/stepgate/bin/stepgate"]
