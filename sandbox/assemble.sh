#!/bin/sh
# Puts the turn image's tree together in $1: an allowlist, run in a Debian build stage (Dockerfile.turn).
set -eu
out=$1
python=/usr/lib/python3.13

# Debian's merged /usr, and the places that a turn mounts over.
mkdir -p "$out/usr/bin" "$out/usr/lib" "$out/usr/lib64" "$out/usr/sbin" "$out/etc" "$out/proc" "$out/sys" "$out/dev" \
    "$out/grounding" "$out/extra" "$out/instance" "$out/run/doors" "$out/run/turn" "$out/home/agent" "$out/tmp" "$out/var/lib/dpkg"
for name in bin lib lib64 sbin; do ln -s "usr/$name" "$out/$name"; done

# Python: the interpreter and its library, without what only installs, draws or tests.
cp -L /usr/bin/python3.13 "$out/usr/bin/python3.13"
ln -s python3.13 "$out/usr/bin/python3"
cp -R "$python" "$out$python"
rm -rf "$out$python/ensurepip" "$out$python/idlelib" "$out$python/tkinter" "$out$python/turtledemo" "$out$python/test" \
    "$out$python/pydoc_data" "$out$python/venv" "$out$python/sitecustomize.py" "$out$python/EXTERNALLY-MANAGED" \
    "$out$python"/config-* "$out$python"/_sysconfigdata_d* "$out$python/lib-dynload"/*tkinter*
python3 -m compileall -q -f "$out$python" || true
find "$out$python" -name '__pycache__' -prune -o -type l -print | while read -r link; do
    [ -e "$link" ] || rm "$link"
done

# The shared libraries that these programs and extension modules name, by the dynamic linker's own answer.
copy_file() {
    mkdir -p "$out$(realpath "$(dirname "$1")")"
    cp -L "$1" "$out$(realpath "$(dirname "$1")")/$(basename "$1")"
}
ldd /usr/bin/python3.13 /usr/local/bin/claude "$out$python"/lib-dynload/*.so 2>/dev/null \
    | sed -n 's/^.*=> \(\/[^ ]*\) .*$/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*$/\1/p' | sort -u > /tmp/libraries
while read -r library; do copy_file "$library"; done < /tmp/libraries

# Data: names of services and protocols, time zones (an example: opening hours), a UTF-8 locale, who made this.
for file in /etc/os-release /usr/lib/os-release /etc/debian_version /etc/protocols /etc/services /etc/mime.types; do
    [ ! -e "$file" ] || copy_file "$file"
done
cp -R /usr/lib/locale "$out/usr/lib/locale" 2>/dev/null || true
mkdir -p "$out/usr/share" && cp -R /usr/share/zoneinfo "$out/usr/share/zoneinfo"
printf 'root:x:0:0::/nonexistent:/nonexistent\nnobody:x:65534:65534::/nonexistent:/nonexistent\n' > "$out/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' > "$out/etc/group"
printf 'passwd: files\ngroup: files\nhosts: files\n' > "$out/etc/nsswitch.conf"

# The records of the packages that these files came from, so that a scanner of the image sees their versions.
{
    dpkg-query --search /usr/bin/python3.13 "$python/asyncio/__init__.py" "$python/os.py" /usr/share/zoneinfo/UTC /usr/lib/os-release || true
    sed 's/^/any: /' /tmp/libraries | while read -r _ library; do
        dpkg-query --search "$(realpath "$library")" 2>/dev/null || true
    done
} | cut -d: -f1 | sort -u > /tmp/packages
while read -r package; do
    dpkg-query --status "$package"
    echo
    [ ! -e "/usr/share/doc/$package/copyright" ] || copy_file "/usr/share/doc/$package/copyright"
done < /tmp/packages > "$out/var/lib/dpkg/status"

# Ours: compiled, because Python does not cache the program that it is given.
mkdir -p "$out/opt/gatehouse"
cp /opt/gatehouse/turn_init.py /opt/gatehouse/grants.py "$out/opt/gatehouse/"
python3 -c 'import py_compile, sys
for name in sys.argv[1:]:
    py_compile.compile(name, name + "c", name.removeprefix(sys.argv[1].rsplit("/opt", 1)[0]), True,
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)' \
    "$out/opt/gatehouse/turn_init.py" "$out/opt/gatehouse/grants.py"

# Nothing that a turn could write, gain rights by, or be misled by.
chmod -R u=rwX,go=rX "$out"
chmod 1777 "$out/tmp"
find "$out$python" -name '*.py' -exec chmod a-x {} +
ldconfig -r "$out" && rm -rf "$out/var/cache"
ln -sf /proc/mounts "$out/etc/mtab"
bad=$(find "$out" -perm /6000; getcap -r "$out"; find "$out/dev" -mindepth 1; find "$out" ! -type f ! -type d ! -type l)
[ -z "$bad" ] || { echo "not allowed in the turn image: $bad" >&2; exit 1; }
