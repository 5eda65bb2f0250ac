#!/usr/bin/env bash
# Fill /srv/mirror. Usage: fill WHOLE WHEEL DEB... The script creates the file WHOLE when the mirror is complete.
set -euo pipefail
whole=$1 wheel=$2
shift 2
export DEBIAN_FRONTEND=noninteractive
rm -rf /srv/mirror/* && mkdir -p /srv/mirror/distribution/partial "/srv/mirror/python/${wheel%%=*}"
apt-get --quiet update

# The packages with all dependencies that a node lacks. This comes first, because apt does not download installed packages.
apt-get --quiet --yes --no-install-recommends --download-only \
  -o Dir::Cache::archives=/srv/mirror/distribution -o APT::Sandbox::User=root install "$@"
rm -rf /srv/mirror/distribution/{partial,lock}

apt-get --quiet --yes --no-install-recommends install apt-utils dpkg-dev gnupg python3-pip
cd /srv/mirror/distribution
dpkg-scanpackages --multiversion . > Packages
apt-ftparchive release . > Release
gpg --batch --quiet --passphrase '' --quick-gen-key site rsa2048 sign never
gpg --batch -u site --clearsign -o InRelease Release
gpg --armor --export site > ../site.asc
gpg --list-keys --with-colons site | awk -F: '/^fpr/ {print $10; exit}' > ../site.fingerprint

python3 -m pip download --quiet --no-deps --dest "/srv/mirror/python/${wheel%%=*}" "$wheel"
chmod -R a+rX /srv/mirror
touch "$whole"
