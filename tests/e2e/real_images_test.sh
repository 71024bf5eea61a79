#!/bin/bash
# Images that other tools made: import, what they say about themselves, and a run.
# The Debian root by mmdebstrap needs the network and a minute: with WHERRY_LONG=1.
. "$(dirname "$0")/lib.sh"
begin images
for tool in umoci skopeo; do command -v $tool >/dev/null || { skip $tool "it is not installed"; exit 0; }; done
made=${WHERRY_TEST_IMAGE:-$work/image}
[[ -e $made/oci/index.json ]] || "$top/tools/dev/make-image" "$made" >/dev/null 2>"$work/err" || { fail make-image "$(tail -n 2 "$work/err")"; exit 1; }

r() { timeout 60 "$W" run --rm "$@" 2>&1 </dev/null; }
# works NAME SOURCE [FLAGS]: it is imported as NAME and runs
works() {
  local name=$1; shift
  check_status "$name.import" 0 timeout 120 "$W" image import "$@" "localhost/$name:latest"
  check_has "$name.digest" sha256: "$(cat "$work/out")"
  check "$name.runs" "from $name" "$(r "localhost/$name" echo "from $name")"
  check_status "$name.status" 7 timeout 60 "$W" run --rm "localhost/$name" sh -c 'exit 7'
}

# ---- umoci: two layers, a whiteout, a configuration
cp -a "$made/oci" "$work/oci"
mkdir -p "$work/layer/opt/app"; echo second >"$work/layer/opt/app/layer"
umoci insert --image "$work/oci:latest" "$work/layer/opt" /opt >/dev/null 2>&1
umoci insert --image "$work/oci:latest" --whiteout /etc/os-release >/dev/null 2>&1
umoci config --image "$work/oci:latest" --config.workingdir /opt/app --config.user app --config.env GREETING='hello there' \
  --config.entrypoint /bin/sh --config.entrypoint -c --config.cmd 'echo "$GREETING $(pwd) $(id -un) $(cat layer)"' >/dev/null
check_status umoci.import 0 "$W" image import "$work/oci" localhost/umoci:latest
check umoci.configuration 'hello there /opt/app app second' "$(r localhost/umoci)"
check umoci.command_replaced mine "$(r localhost/umoci 'echo mine')"
check umoci.user_replaced root "$(r -u root localhost/umoci 'id -un')"
check umoci.whiteout absent "$(r -u root localhost/umoci '[ -e /etc/os-release ] && echo there || echo absent')"
layers=$(jq '.layers | length' "$work/oci/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/oci/index.json" | cut -d: -f2)")
check_has umoci.layers "$layers layers" "$("$W" image import "$work/oci" localhost/again:latest 2>&1)"

# ---- skopeo: from one kind to another
skopeo copy -q "oci:$made/oci:latest" "oci:$work/copied:tagged" || fail skopeo.oci "copy"
works skopeo-oci "$work/copied"
skopeo copy -q "oci:$made/oci:latest" "docker-archive:$work/archive.tar:localhost/arch:1" || fail skopeo.archive "copy"
works skopeo-archive "$work/archive.tar"
skopeo copy -q "oci:$made/oci:latest" "oci-archive:$work/oci.tar:tagged" || fail skopeo.oci_archive "copy"
works skopeo-oci-archive "$work/oci.tar"
if skopeo copy -q --dest-compress-format zstd "oci:$made/oci:latest" "oci:$work/zstd:tagged" 2>/dev/null &&
  grep -qr 'tar+zstd' "$work/zstd/blobs"; then works skopeo-zstd "$work/zstd"; else echo "skopeo makes no zstd layers here"; fi
# ---- a bare root, as an archive
tar -C "$made/rootfs" -cJf "$work/rootfs.tar.xz" --numeric-owner . && works rootfs-xz "$work/rootfs.tar.xz"

# A blob that is not what its digest says, for a store that does not have it yet
export WHERRY_ROOT=$work/fresh
cp -a "$made/oci" "$work/bad"
layer=$(find "$work/bad/blobs/sha256" -type f -size +100k | head -n 1)
printf x | dd of="$layer" bs=1 seek=5000 conv=notrunc status=none
check_status damaged.refused 125 "$W" image import "$work/bad" localhost/bad:latest
check_has damaged.says_digest digest "$(cat "$work/err")"
check damaged.nothing '' "$("$W" image ls | grep localhost/bad)"
export WHERRY_ROOT=$work/root

# ---- Debian
if [[ ${WHERRY_LONG:-0} != 1 ]]; then skip debian "a Debian root is made with WHERRY_LONG=1 only"
elif ! command -v mmdebstrap >/dev/null; then skip debian "mmdebstrap is not installed"
elif ! timeout 400 mmdebstrap --variant=essential --mode=root bookworm "$work/debian.tar" >"$work/log" 2>&1; then
  skip debian "mmdebstrap: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
else
  check_status debian.import 0 timeout 300 "$W" image import "$work/debian.tar" localhost/debian:12
  check_has debian.version 12. "$(r localhost/debian:12 cat /etc/debian_version)"
  check debian.dpkg 'install ok installed' "$(r localhost/debian:12 dpkg-query -W -f '${Status}' base-files)"
  check debian.user 'uid=1(daemon) gid=1(daemon) groups=1(daemon)' "$(r -u daemon localhost/debian:12 id)"
  check debian.setuid 4755 "$(r localhost/debian:12 stat -c %a /bin/su)"
  check debian.write written "$(r localhost/debian:12 bash -c 'echo written >/var/lib/x; cat /var/lib/x')"
fi
finish
