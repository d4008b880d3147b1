# shellcheck shell=sh
# Installing on Debian and Ubuntu, as root, and only what is missing; on any other host the same is a message.
# Debian 12's own engine is too old. There, a source for Debian 13 is made from the host's own (mirror and keyring), with
# pins that let in the engine and its tools and nothing else; runc and containerd stay Debian 12's.

APT_LET_IN="docker.io docker-cli docker-compose docker-buildx runsc"

apt_host() { sed -n "s/^$1=//p" "$HOST_FILES/etc/os-release" 2>/dev/null | sed 's/^"\(.*\)"$/\1/' | head -n 1; }

# apt_may EXIT CODE SENTENCE MEND: stop as fail does, unless this is root on Debian or Ubuntu.
apt_may() {
  case "$(apt_host ID)" in
    debian | ubuntu) is_root || fail "$1" "$2" "$3" "$4; or run this as root, and it will be installed" ;;
    *) fail "$1" "$2" "$3" "$4" ;;
  esac
}

apt_run() { DEBIAN_FRONTEND=noninteractive logged apt "$@"; }

apt_update() { apt_run apt-get update -q -o Acquire::Retries=3 || say "apt-get update had errors (log: .gatehouse/apt.log)"; }

apt_install() {
  say "apt-get install $*"
  apt_run apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" ||
    fail 4 host-not-ready "apt-get install $* failed: $(sed -n 's/^E: //p' "$GATEHOUSE_STATE/apt.log" | tail -n 1)" "see .gatehouse/apt.log"
}

apt_candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9]*:\)\{0,1\}//p'; }

# apt_major VERSION: its first number, or 0.
apt_major() {
  apt_number=$(printf '%s\n' "$1" | sed -n 's/^\([0-9][0-9]*\).*/\1/p')
  printf '%s\n' "${apt_number:-0}"
}

engine_install() {
  apt_may 4 engine-unavailable "no Docker engine answers on this host" "$ENGINE_MEND"
  say "no Docker engine here: installing the distribution's with apt-get (log: .gatehouse/apt.log)"
  : >"$GATEHOUSE_STATE/installing"
  apt_run dpkg --configure -a || :
  apt_update
  if [ "$(apt_major "$(apt_candidate docker.io)")" -lt 26 ]; then
    [ "$(apt_host ID)/$(apt_host VERSION_CODENAME)" = debian/bookworm ] || {
      rm -f "$GATEHOUSE_STATE/installing"
      fail 4 engine-too-old "this distribution has no docker.io of version 26 or later" "$ENGINE_MEND"
    }
    apt_add_trixie
  fi
  case "$(apt_host ID)" in
    ubuntu) apt_packages="docker.io docker-compose-v2 docker-buildx" ;;
    *) apt_packages="docker.io docker-cli docker-compose docker-buildx" ;;
  esac
  # Where the kernel has AppArmor on, the engine needs its parser to start a container.
  case "$(cat "$HOST_FILES/sys/module/apparmor/parameters/enabled" 2>/dev/null)" in
    Y*) apt_packages="$apt_packages apparmor" ;;
  esac
  # shellcheck disable=SC2086 # a list of names
  apt_install $apt_packages iptables ca-certificates
  rm -f "$GATEHOUSE_STATE/installing"
}

# --- the source for Debian 13 ----------------------------------------------------------------------------
apt_add_trixie() {
  apt_suite=$(apt_host VERSION_CODENAME)
  apt_origin "$apt_suite" >"$GATEHOUSE_STATE/apt.origin"
  apt_uri=$(sed -n 's/^uri //p' "$GATEHOUSE_STATE/apt.origin")
  [ -n "$apt_uri" ] || {
    rm -f "$GATEHOUSE_STATE/installing"
    fail 4 host-not-ready "no source for $apt_suite main in $HOST_FILES/etc/apt" "$ENGINE_MEND"
  }
  say "adding a source for Debian 13 from $apt_uri, pinned to the engine and its tools (/etc/apt/sources.list.d/gatehouse-trixie.sources)"
  apt_install debian-archive-keyring
  apt_source >"$HOST_FILES/etc/apt/sources.list.d/gatehouse-trixie.sources"
  apt_pins >"$HOST_FILES/etc/apt/preferences.d/gatehouse-trixie"
  apt_update
  [ "$(apt_major "$(apt_candidate docker.io)")" -ge 26 ] ||
    fail 4 host-not-ready "$apt_uri gives no docker.io of version 26 or later" "$ENGINE_MEND"
}

apt_source() {
  printf '%s\n' "# Made by ./gatehouse: the Docker engine of Debian 13 (see preferences.d/gatehouse-trixie)." \
    "Types: deb" "URIs: $apt_uri" "Suites: trixie" "Components: main"
  sed -n 's/^signed-by /Signed-By: /p; s/^trusted /Trusted: /p' "$GATEHOUSE_STATE/apt.origin"
}

apt_pins() {
  printf '%s\n' "Package: *" "Pin: release n=trixie" "Pin-Priority: 50" "" \
    "Package: $APT_LET_IN" "Pin: release n=trixie" "Pin-Priority: 700"
}

# apt_origin SUITE: where this host has SUITE main from, as lines `uri …`, `signed-by …`, `trusted …`; security and
# update suites have other names and are passed over. Both formats of sources are read; the first match wins.
apt_origin() {
  apt_lists=$HOST_FILES/etc/apt
  {
    for apt_file in "$apt_lists"/sources.list.d/*.sources; do
      [ -r "$apt_file" ] || continue
      cat "$apt_file"
      echo
    done | apt_deb822 "$1"
    cat "$apt_lists/sources.list" "$apt_lists"/sources.list.d/*.list 2>/dev/null | apt_one_line "$1"
  } | awk '$1 == "uri" { if (seen++) exit } { print }'
}

apt_deb822() {
  awk -v suite="$1" '
    function has(list, word,   words, count, i) {
      count = split(list, words, /[ \t]+/)
      for (i = 1; i <= count; i++) if (words[i] == word) return 1
      return 0
    }
    function end(   uris) {
      if (has(field["types"], "deb") && has(field["suites"], suite) && has(field["components"], "main") && tolower(field["enabled"]) != "no") {
        sub(/^[ \t]+/, "", field["uris"])
        split(field["uris"], uris, /[ \t]+/)
        if (uris[1] !~ /^cdrom:/) {
          print "uri " uris[1]
          sub(/^[ \t]+/, "", field["signed-by"])
          if (field["signed-by"] ~ /^\//) print "signed-by " field["signed-by"]
          sub(/^[ \t]+/, "", field["trusted"])
          if (field["trusted"] != "") print "trusted " field["trusted"]
        }
      }
      split("", field)
      name = ""
    }
    /^#/ { next }
    /^[ \t]*$/ { end(); next }
    /^[ \t]/ { if (name != "") field[name] = field[name] " " $0; next }
    { at = index($0, ":"); name = tolower(substr($0, 1, at - 1)); value = substr($0, at + 1); gsub(/\r/, "", value); field[name] = value
      if (name == "enabled") gsub(/[ \t]/, "", field[name]) }
    END { end() }'
}

apt_one_line() {
  sed -n 's/#.*//; s/^[[:space:]]*deb[[:space:]]\{1,\}//p' | awk -v suite="$1" '
    {
      options = ""
      if (match($0, /^\[[^]]*\]/)) { options = substr($0, 2, RLENGTH - 2); $0 = substr($0, RLENGTH + 1) }
      main = 0
      for (i = 3; i <= NF; i++) if ($i == "main") main = 1
      if ($2 != suite || !main || $1 ~ /^cdrom:/) next
      print "uri " $1
      count = split(options, option, /[ \t]+/)
      for (i = 1; i <= count; i++) {
        if (option[i] ~ /^signed-by=/) { sub(/^signed-by=/, "", option[i]); print "signed-by " option[i] }
        if (option[i] ~ /^trusted=/) { sub(/^trusted=/, "", option[i]); print "trusted " option[i] }
      }
    }'
}
