# shellcheck shell=sh
# The base image, from a registry where one is in reach and by debootstrap where none is; and the builds on it.

IMAGES="gatehouse-turn:dev gatehouse-ingress:dev gatehouse-front:dev gatehouse-spawner:dev gatehouse-modelproxy:dev"

base_ready() { base_image "${BASE:-debian:trixie-slim}" trixie; }

# base_image IMAGE SUITE: have IMAGE, which is Debian's SUITE; only under its own name can it be made here.
base_image() {
  base=$1
  base_suite=$2
  docker image inspect "$base" >/dev/null 2>&1 && return 0
  say "pulling the base image $base"
  logged pull within 180 docker pull "$base" && return 0
  [ "$base" = "debian:$base_suite-slim" ] ||
    fail 5 image-missing "the base image $base is not here and cannot be pulled: $(last_line "$GATEHOUSE_STATE/pull.log")" \
      "docker load it, or unset BASE"
  base_bootstrap
}

# The same files as the official image has, made from Debian's packages, under the name that the Dockerfiles use.
base_bootstrap() {
  base_mend="docker save it where a registry is in reach, and docker load it here"
  if ! command -v debootstrap >/dev/null 2>&1; then
    apt_may 5 image-missing "no image registry is in reach, and debootstrap is not installed" "$base_mend"
    say "no image registry is in reach: installing debootstrap, to make the base image from Debian's packages"
    apt_update
    apt_install debootstrap
  fi
  is_root || fail 5 image-missing "no image registry is in reach, and only root can run debootstrap" "run this as root, or $base_mend"
  base_clear
  on_stop base_clear
  base_folder=$GATEHOUSE_STATE/base/root
  mkdir -p "$base_folder"
  base_mirror=$(apt_origin "$(apt_host VERSION_CODENAME)" | sed -n 's/^uri \(https\{0,1\}:.*\)/\1/p')
  case "$(apt_host ID)" in debian) ;; *) base_mirror= ;; esac
  say "no image registry is in reach: making $base with debootstrap (about half a minute; log: .gatehouse/base.log)"
  # shellcheck disable=SC2086 # no word when there is no mirror
  logged base debootstrap --variant=minbase "$base_suite" "$base_folder" $base_mirror ||
    fail 5 image-missing "debootstrap failed: $(last_line "$GATEHOUSE_STATE/base.log")" "see .gatehouse/base.log"
  rm -rf "$base_folder"/var/cache/apt/archives/*.deb "$base_folder"/var/lib/apt/lists/* "$base_folder"/var/log/*
  tar -C "$base_folder" -cf "$GATEHOUSE_STATE/base/root.tar" --one-file-system . ||
    fail 5 image-missing "the base image could not be packed" "see the free space of $GATEHOUSE_STATE"
  logged base docker import -c 'CMD ["bash"]' "$GATEHOUSE_STATE/base/root.tar" "$base" ||
    fail 5 image-missing "docker import failed: $(last_line "$GATEHOUSE_STATE/base.log")" "see .gatehouse/base.log"
  base_clear
}

# What a debootstrap that was stopped may have mounted comes off first.
base_clear() {
  [ -d "$GATEHOUSE_STATE/base" ] || return 0
  for base_mount in proc sys dev/pts dev; do
    umount "$GATEHOUSE_STATE/base/root/$base_mount" 2>/dev/null || :
  done
  rm -rf --one-file-system "$GATEHOUSE_STATE/base"
}

# The images are the checkout's, whichever stack is to run: compose writes the project's name into an image, so a build
# under another name would give every image another id and leave the old ones behind.
images_build() {
  images_time=
  # shellcheck disable=SC2086 # a list of names
  docker image inspect $IMAGES >/dev/null 2>&1 || images_time="a minute or two the first time; "
  say "building the images (${images_time}log: .gatehouse/build.log)"
  : >"$GATEHOUSE_STATE/build.log"
  BUILDKIT_PROGRESS=plain logged build docker compose --project-directory "$GATEHOUSE_ROOT" --project-name gatehouse \
    --file "$GATEHOUSE_ROOT/compose.yaml" build || {
    images_why=$(sed -n 's/^.*\(ERROR: .*\)$/\1/p' "$GATEHOUSE_STATE/build.log" | head -n 1)
    fail 5 image-missing "an image did not build: ${images_why:-$(last_line "$GATEHOUSE_STATE/build.log")}" "see .gatehouse/build.log"
  }
}
