#!/bin/sh
# Pack Docker's engine for a machine that has none and reaches no network: Debian's dockerd, containerd and runc, with the
# libraries that another distribution may lack, as .device/docker.tar.xz (28 MB, 3 minutes of one core), and the Python package
# that speaks to it. No docker command. Needs apt-get, dpkg, xz and .venv; installs nothing. docker_up.sh unpacks it there.
set -eu
cd "$(dirname "$0")/../.."
to=.device/docker.tar.xz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rm -rf .device
mkdir -p .device "$folder/debs" "$folder/all" "$folder/pack/bin" "$folder/pack/lib"

.venv/bin/python -m pip download --quiet --no-deps --dest .device "$(grep '^docker==' constraints.txt)"

# The second and third line are what they are linked with, beside the C library.
packages="docker.io containerd runc iptables
    libseccomp2 libdevmapper1.02.1 libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblzma5 libzstd1 liblz4-1 libselinux1 libudev1
    libpcre2-8-0 libxtables12 libip4tc2 libip6tc2 libnftnl11 libmnl0"
# shellcheck disable=SC2086  # a list
(cd "$folder/debs" && apt-get -qq -o APT::Sandbox::User=root download $packages)
for package in "$folder"/debs/*.deb; do dpkg-deb --extract "$package" "$folder/all"; done

find "$folder/all" -type f \( -name dockerd -o -name containerd -o -name containerd-shim-runc-v2 -o -name runc \
    -o -name xtables-legacy-multi \) -path '*bin/*' -exec cp {} "$folder/pack/bin/" \;
ln -s xtables-legacy-multi "$folder/pack/bin/iptables"
find "$folder/all" -path '*linux-gnu*' -name 'lib*.so.*' -exec cp -a {} "$folder/pack/lib/" \;
(cd "$folder/debs" && ls) >"$folder/pack/packages"

tar -C "$folder/pack" -c . | xz --threads=1 --x86 --lzma2=preset=9e,dict=192MiB >"$to.new"
mv "$to.new" "$to"
echo "$to: $(wc -c <"$to") bytes"
