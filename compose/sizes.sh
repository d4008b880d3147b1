#!/bin/sh
# Prints each image's size and how many setuid or setgid files it holds (none is the promise).
# The turn image has no shell, so each is looked at from outside, as the tar that the engine exports.
set -eu
printf '%-24s %8s %s\n' image MB setuid
for name in turn ingress front spawner modelproxy; do
  image=gatehouse-$name:dev
  bytes=$(docker image inspect --format '{{.Size}}' "$image")
  container=$(docker create --network none "$image")
  count=$(docker export "$container" | tar -tv | awk '$1 ~ /^-..[sS]|^-.....[sS]/' | wc -l)
  docker rm "$container" >/dev/null
  printf '%-24s %8d %d\n' "$image" "$((bytes / 1000000))" "$count"
done
