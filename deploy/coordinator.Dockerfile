# The coordinator, the worker, admin and doctor in one image. Run from the root of the repository:
#   docker build -f deploy/coordinator.Dockerfile --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:… -t countersign-coordinator .
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
COPY packages/receipt/package.json packages/receipt/
COPY packages/service/package.json packages/service/
COPY packages/testing/package.json packages/testing/
COPY services/coordinator/package.json services/coordinator/
COPY docs/site/package.json docs/site/
# The runtime Node comes from npm, pinned by the hash in its lockfile. No package runs install scripts.
RUN npm ci --prefix scripts/runtime --ignore-scripts \
  && npm install --no-save --omit=dev --ignore-scripts --workspace @countersign/coordinator --workspace @countersign/docs
COPY packages/attestation/src packages/attestation/src
COPY packages/evidence/src packages/evidence/src
COPY packages/log/src packages/log/src
COPY packages/policy/src packages/policy/src
COPY packages/protocol/src packages/protocol/src
COPY packages/receipt/src packages/receipt/src
COPY packages/service/src packages/service/src
COPY services/coordinator/src services/coordinator/src
# The documentation, which the coordinator serves. What builds it does not get into the image.
COPY CONTRIBUTING.md ./
COPY docs docs
COPY packages/attestation/spec packages/attestation/spec
COPY packages/log/spec packages/log/spec
COPY packages/policy/spec packages/policy/spec
COPY packages/protocol/spec packages/protocol/spec
COPY packages/receipt/spec packages/receipt/spec
COPY apps/web/public apps/web/public
COPY scripts/readArguments.ts scripts/
RUN scripts/runtime/node_modules/node-linux-*/bin/node -C source docs/site/main.ts
COPY deploy/measure.ts deploy/
COPY deploy/measure deploy/measure
COPY deploy/launcher deploy/launcher
COPY deploy/programs deploy/programs
RUN scripts/runtime/node_modules/node-linux-*/bin/node -C source deploy/measure.ts \
  --image coordinator --libraries --stage out/root --out out/manifest.json

# docker build --target manifest --output . writes the list of all files in the image.
FROM scratch AS manifest
COPY --from=build /src/out/manifest.json /

FROM scratch
LABEL org.opencontainers.image.title="Countersign coordinator" \
  org.opencontainers.image.description="Sign-in, wallets, signing with verified quotes, and the proofs that follow" \
  org.opencontainers.image.licenses="AGPL-3.0-only" \
  org.opencontainers.image.version="0.1.0"
COPY --from=build /src/out/root/ /
WORKDIR /app
USER 65532:65532
EXPOSE 8080
# Run the worker with `--no-healthcheck`: it serves no health endpoint.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/bin/launch", "health"]
# The launcher is static, so no loader reads the environment before it runs. It passes on only the variables that deploy/launcher lists.
ENTRYPOINT ["/bin/launch"]
CMD ["coordinator"]
