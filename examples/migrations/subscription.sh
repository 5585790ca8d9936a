#!/bin/sh
# Other tags, which the consumers read from a variable: RocketMQ's clients never mix two subscriptions, so all stop first.
set -eu
here=$(dirname "$0")
exec planner migrate subscription --to "orders=paid || sent" --green shop-orders-sent --env TAGS="paid || sent" \
  "$here/shop-orders.json" --policy "$here/shop-orders.yaml" --at snapshot --output "${1:-subscription.yaml}"
