#!/bin/sh
# Another name for the group: its offsets are cloned, and a second Deployment takes over.
set -eu
here=$(dirname "$0")
exec planner migrate rename --to shop-orders-2 --green shop-orders-2 --env CONSUMER_GROUP=shop-orders-2 \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-rename.yaml}"
