#!/bin/sh
# Consume again from a time on.
set -eu
here=$(dirname "$0")
exec planner migrate reset --to 2026-11-22T02:00:00Z \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-reset.yaml}"
