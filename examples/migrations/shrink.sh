#!/bin/sh
# Fewer queues for a topic, none of its messages left behind.
set -eu
here=$(dirname "$0")
exec planner migrate shrink --topic orders --queues 3 \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-shrink.yaml}"
