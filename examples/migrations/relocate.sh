#!/bin/sh
# All consumers to nodes of another zone, as a second Deployment (blue-green).
set -eu
here=$(dirname "$0")
exec planner migrate relocate --green shop-orders-zone-b --node-label topology.kubernetes.io/zone=zone-b \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-relocate.yaml}"
