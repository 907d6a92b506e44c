# The key enclave. Run from the root of the repository:
#   docker build -f deploy/enclave.Dockerfile --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:… -t countersign-enclave .
# docs/run/deploy.md lists the pinned inputs and those that you pass.

# The build stage, which also provides the C library. Pass a digest, because tags can move.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY .npmrc package.json package-lock.json ./
COPY scripts/runtime/.npmrc scripts/runtime/package.json scripts/runtime/package-lock.json scripts/runtime/
COPY packages/attestation/package.json packages/attestation/
COPY packages/evidence/package.json packages/evidence/
COPY packages/log/package.json packages/log/
COPY packages/policy/package.json packages/policy/
COPY packages/protocol/package.json packages/protocol/
COPY packages/rootSecret/package.json packages/rootSecret/
COPY packages/service/package.json packages/service/
COPY services/enclave/package.json services/enclave/
# The runtime Node comes from npm, pinned by the hash in its lockfile. No package runs install scripts.
RUN npm ci --prefix scripts/runtime --ignore-scripts \
  && npm install --no-save --omit=dev --ignore-scripts --workspace @countersign/enclave
COPY packages/attestation/src packages/attestation/src
COPY packages/evidence/src packages/evidence/src
COPY packages/log/src packages/log/src
COPY packages/policy/src packages/policy/src
COPY packages/protocol/src packages/protocol/src
COPY packages/rootSecret/src packages/rootSecret/src
COPY packages/service/src packages/service/src
COPY services/enclave/src services/enclave/src
COPY deploy/measure.ts deploy/
COPY deploy/measure deploy/measure
COPY deploy/launcher deploy/launcher
COPY deploy/programs deploy/programs
RUN scripts/runtime/node_modules/node-linux-*/bin/node -C source deploy/measure.ts \
  --image enclave --libraries --stage out/root --out out/manifest.json

# docker build --target manifest --output . writes the list of all files in the image.
FROM scratch AS manifest
COPY --from=build /src/out/manifest.json /

FROM scratch
LABEL org.opencontainers.image.title="Countersign key enclave" \
  org.opencontainers.image.description="Derives wallet keys, signs for users who are signed in, and has each batch quoted" \
  org.opencontainers.image.licenses="AGPL-3.0-only" \
  org.opencontainers.image.version="0.1.0"
COPY --from=build /src/out/root/ /
WORKDIR /app
USER 65532:65532
EXPOSE 8090
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/bin/launch", "health"]
# The launcher is static, so no loader reads the environment before it runs. It passes on only the variables that deploy/launcher lists.
ENTRYPOINT ["/bin/launch"]
CMD ["enclave"]
