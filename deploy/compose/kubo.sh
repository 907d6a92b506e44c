#!/bin/sh
# Runs before Kubo starts. Its interface stays on loopback; its gateway gives out what it has, and fetches nothing for strangers.
set -eu
ipfs config Addresses.API /ip4/127.0.0.1/tcp/5001
ipfs config Addresses.Gateway /ip4/127.0.0.1/tcp/8080
ipfs config --json Gateway.NoFetch true
