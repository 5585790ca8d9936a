#!/bin/sh
# A new image: new pods before old ones, as many at once as cost least.
set -eu
here=$(dirname "$0")
exec planner migrate update --image shop:2 \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-update.yaml}"
