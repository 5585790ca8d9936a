#!/bin/sh
# More queues for a topic, and more consumers for them.
set -eu
here=$(dirname "$0")
exec planner migrate expand --topic orders --queues 12 --consumers 6 \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-expand.yaml}"
