#!/bin/sh
# From range to cooperative-sticky. librdkafka refuses lists that mix protocols, so all stop before any starts.
set -eu
here=$(dirname "$0")
exec planner migrate assignor --to cooperative-sticky --green shop-payments-sticky --env ASSIGNOR=cooperative-sticky \
  "$here/shop-payments.json" --policy "$here/shop-payments.yaml" --at snapshot --output "${1:-assignor.yaml}"
