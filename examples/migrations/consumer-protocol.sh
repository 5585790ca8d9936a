#!/bin/sh
# To the consumer protocol (KIP-848), one member at a time.
set -eu
here=$(dirname "$0")
exec planner migrate consumer-protocol --env GROUP_PROTOCOL=consumer \
  "$here/shop-payments.json" --policy "$here/shop-payments.yaml" --at snapshot --output "${1:-consumer-protocol.yaml}"
