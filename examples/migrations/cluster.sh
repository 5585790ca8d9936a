#!/bin/sh
# To another cluster, while people move the producers: the old one is drained.
set -eu
here=$(dirname "$0")
exec planner migrate cluster --to ClusterB --green shop-orders-b --env NAME_SERVER=10.1.0.1:9876 \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-cluster.yaml}"
