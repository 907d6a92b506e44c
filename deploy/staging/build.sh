#!/bin/sh
# Builds the four images of a staging, from the root of the repository. ENGINE=podman takes another engine; NODE_IMAGE names the base by digest.
set -eu
cd "$(dirname "$0")/../.."
ENGINE=${ENGINE:-docker}
NODE_IMAGE=${NODE_IMAGE:-node:24.21.0-bookworm-slim}
for name in enclave coordinator web; do
  # shellcheck disable=SC2086 # BUILD_OPTIONS are several words.
  $ENGINE build ${BUILD_OPTIONS:-} -f "deploy/$name.Dockerfile" --build-arg VARIANT=-staging --build-arg "NODE_IMAGE=$NODE_IMAGE" \
    -t "countersign-$name-staging:0.1.0" .
done
# shellcheck disable=SC2086
$ENGINE build ${BUILD_OPTIONS:-} -f deploy/staging/world.Dockerfile --build-arg "NODE_IMAGE=$NODE_IMAGE" -t countersign-world:0.1.0 .
$ENGINE images | grep -E 'countersign-(.*-staging|world) '
