#!/bin/sh
# Starts the enclave of this guest. How the root secret comes differs from guest to guest and from start to start, and each guest has logs of
# its own, so these are read from a file that is not measured; by name, because any other variable in there could mean another image.
set -eu
deploy=$(dirname "$0")/..
folder=$(sed -n 's/^SECRETS_DIR=//p' "$deploy/.env" | tail -n 1)
for name in ROOT_SECRET_FROM ROOT_SECRET_BACKUP_FILE ROOT_SECRET_NEW_BACKUP_FILE LOG_ORIGINS; do
  value=$(sed -n "s/^$name=//p" "$folder/start.env" | tail -n 1)
  export "$name=$value"
done
# Compose cannot ask for it: the other profile, of which it reads this part as well, has none.
if [ -z "$ROOT_SECRET_FROM" ]; then
  echo "$folder/start.env: ROOT_SECRET_FROM is missing" >&2
  exit 1
fi
exec docker compose --env-file "$deploy/.env" -f "$deploy/compose.yaml" --profile enclave up -d
