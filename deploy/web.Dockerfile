# The web app and a small server. Run from the root of the repository:
#   docker build -f deploy/web.Dockerfile --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:… -t countersign-web .
# Mount a config.json at WEB_CONFIG_FILE: see apps/web/README.md.

# The build stage, which also provides the C library. Pass a digest, because tags can move.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY .npmrc package.json package-lock.json ./
COPY scripts/runtime/.npmrc scripts/runtime/package.json scripts/runtime/package-lock.json scripts/runtime/
COPY packages/attestation/package.json packages/attestation/
COPY packages/log/package.json packages/log/
COPY packages/policy/package.json packages/policy/
COPY packages/protocol/package.json packages/protocol/
COPY packages/receipt/package.json packages/receipt/
COPY packages/sdk/package.json packages/sdk/
COPY packages/service/package.json packages/service/
COPY packages/verify/package.json packages/verify/
COPY apps/web/package.json apps/web/
# Installs the build tools too. None of them is copied into the image.
RUN npm ci --prefix scripts/runtime --ignore-scripts \
  && npm install --no-save --ignore-scripts --workspace @countersign/web --workspace @countersign/service --include-workspace-root
COPY tsconfig.base.json ./
COPY packages/attestation/tsconfig.json packages/attestation/
COPY packages/attestation/src packages/attestation/src
COPY packages/log/tsconfig.json packages/log/
COPY packages/log/src packages/log/src
COPY packages/policy/tsconfig.json packages/policy/
COPY packages/policy/src packages/policy/src
COPY packages/protocol/tsconfig.json packages/protocol/
COPY packages/protocol/src packages/protocol/src
COPY packages/receipt/tsconfig.json packages/receipt/
COPY packages/receipt/src packages/receipt/src
COPY packages/sdk/tsconfig.json packages/sdk/
COPY packages/sdk/src packages/sdk/src
COPY packages/verify/tsconfig.json packages/verify/
COPY packages/verify/src packages/verify/src
COPY apps/web/index.html apps/web/vite.config.ts apps/web/tsconfig.json apps/web/
COPY apps/web/public apps/web/public
COPY apps/web/src apps/web/src
RUN scripts/runtime/node_modules/node-linux-*/bin/node node_modules/vite/bin/vite.js build apps/web
COPY packages/service/src packages/service/src
COPY deploy/measure.ts deploy/
COPY deploy/measure deploy/measure
COPY deploy/launcher deploy/launcher
COPY deploy/programs deploy/programs
COPY deploy/web deploy/web
RUN scripts/runtime/node_modules/node-linux-*/bin/node -C source deploy/measure.ts \
  --image web --libraries --stage out/root --out out/manifest.json

# docker build --target manifest --output . writes the list of all files in the image.
FROM scratch AS manifest
COPY --from=build /src/out/manifest.json /

FROM scratch
LABEL org.opencontainers.image.title="Countersign web app" \
  org.opencontainers.image.description="The wallet, and the page on which a visitor's own browser verifies a proof" \
  org.opencontainers.image.licenses="AGPL-3.0-only" \
  org.opencontainers.image.version="0.1.0"
COPY --from=build /src/out/root/ /
WORKDIR /app
USER 65532:65532
EXPOSE 8088
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
  CMD ["/bin/launch", "health"]
# The launcher is static, so no loader reads the environment before it runs. It passes on only the variables that deploy/launcher lists.
ENTRYPOINT ["/bin/launch"]
CMD ["web"]
