#!/bin/sh
# The same for Java clients: two rolls, as the protocol demands.
set -eu
here=$(dirname "$0")
exec planner migrate assignor --to cooperative-sticky --variable PARTITION_ASSIGNMENT_STRATEGY \
  "$here/shop-invoices.json" --policy "$here/shop-invoices.yaml" --at snapshot --output "${1:-assignor-in-rolls.yaml}"
