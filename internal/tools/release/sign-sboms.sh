#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Writes the checksums of all SBOMs of a release and signs them; GoReleaser
# calls it. The registry refuses a SHA256SUMS that lists an SBOM.
# usage: sign-sboms.sh dist/..._SBOM_SHA256SUMS.sig FINGERPRINT
set -eu

cd "$(dirname "$1")"
signature=$(basename "$1")
sums=${signature%.sig}
sha256sum -- *.spdx.json >"$sums"
gpg --batch --local-user "$2" --output "$signature" --detach-sign "$sums"
