#!/bin/sh
# Starts the enclave of this guest. The source of the root secret and the log origins differ between guests and starts, so they come from an
# unmeasured file. The script reads them by name: another variable in that file could select another image.
set -eu
deploy=$(dirname "$0")/..
folder=$(sed -n 's/^SECRETS_DIR=//p' "$deploy/.env" | tail -n 1)
for name in ROOT_SECRET_FROM ROOT_SECRET_BACKUP_FILE ROOT_SECRET_NEW_BACKUP_FILE LOG_ORIGINS; do
  value=$(sed -n "s/^$name=//p" "$folder/start.env" | tail -n 1)
  export "$name=$value"
done
# compose.yaml cannot require it, because Compose also parses this service for the other profile, which has no value for it.
if [ -z "$ROOT_SECRET_FROM" ]; then
  echo "$folder/start.env: ROOT_SECRET_FROM is missing" >&2
  exit 1
fi
exec docker compose --env-file "$deploy/.env" -f "$deploy/compose.yaml" --profile enclave up -d
