#!/bin/sh
# Runs before Kubo starts. The API stays on loopback. The gateway serves only blocks that the node has.
set -eu
ipfs config Addresses.API /ip4/127.0.0.1/tcp/5001
ipfs config Addresses.Gateway /ip4/127.0.0.1/tcp/8080
ipfs config --json Gateway.NoFetch true
