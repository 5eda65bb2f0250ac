#!/usr/bin/env bash
# Fill /srv/mirror: fill WHOLE WHEEL DEB...; WHOLE is the file that says that it is whole.
set -euo pipefail
whole=$1 wheel=$2
shift 2
export DEBIAN_FRONTEND=noninteractive
rm -rf /srv/mirror/* && mkdir -p /srv/mirror/distribution/partial "/srv/mirror/python/${wheel%%=*}"
apt-get --quiet update

# What the packages need beside what a node has: asked before anything else is installed here.
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
