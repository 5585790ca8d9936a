#!/bin/sh
# Another allocation strategy, which the consumers read from a variable: stop all, start all, or a second group beside.
set -eu
here=$(dirname "$0")
exec planner migrate strategy --to AVG_BY_CIRCLE --green shop-orders-circle --new-group shop-orders-circle --env ALLOCATION_STRATEGY=AVG_BY_CIRCLE \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-strategy.yaml}"
