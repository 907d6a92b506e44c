# What surrounds a staging: a test chain with the contract, a satellite, an identity provider without passwords. From the root of the repository:
#   docker build -f deploy/staging/world.Dockerfile -t countersign-world:0.1.0 .
# It is measured by nobody and proves nothing: it stands in for what production buys. docs/production.md says when to use it.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Countersign world, for staging" \
  org.opencontainers.image.description="A test chain, a simulated satellite and an identity provider without passwords" \
  org.opencontainers.image.licenses="AGPL-3.0-only" \
  org.opencontainers.image.version="0.1.0"
WORKDIR /app
COPY .npmrc package.json package-lock.json ./
COPY packages/attestation/package.json packages/attestation/
COPY packages/evidence/package.json packages/evidence/
COPY packages/log/package.json packages/log/
COPY packages/policy/package.json packages/policy/
COPY packages/protocol/package.json packages/protocol/
COPY packages/receipt/package.json packages/receipt/
COPY packages/service/package.json packages/service/
COPY packages/testing/package.json packages/testing/
COPY packages/verify/package.json packages/verify/
RUN npm install --no-save --omit=dev --ignore-scripts --workspace @countersign/testing --workspace @countersign/service
COPY packages packages
COPY contracts contracts
COPY dev dev
COPY deploy/staging deploy/staging
# Whoever it runs as keeps the chain here; a volume takes the mode over.
RUN mkdir -m 1777 /data
USER 65532:65532
CMD ["node", "-C", "source", "deploy/staging/world.ts"]
