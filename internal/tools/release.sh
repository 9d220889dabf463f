#!/usr/bin/env bash
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# usage: release.sh check           make a release of the last commit without publishing it, and install it
#        release.sh notes VERSION   print what CHANGELOG.md says about a version, such as v1.2.3
#        release.sh tag VERSION     tag a commit after the last one of main, in which links to this repository lead to the tag
#        release.sh tagged VERSION  verify that the tag was made so
#        release.sh draft VERSION   verify everything in a draft on GitHub, as the workflow made it
#        release.sh sign-sboms dist/..._SBOM_SHA256SUMS.sig FINGERPRINT   GoReleaser runs it
# The check needs git, gpg, sha256sum and unzip.
set -euo pipefail

project=terraform-provider-agent

fail() {
	echo "release: $*" >&2
	exit 1
}

notes() {
	awk -v heading="## [${1#v}]" '/^## / { found = index($0, heading) == 1; next } found' CHANGELOG.md | sed '/./,$!d'
}

# ready checks what a person has to do for a version before its tag.
ready() {
	local heading
	[[ $1 =~ ^v([0-9]+\.[0-9]+)\.[0-9]+(-.+)?$ ]] || fail "$1 is no version, such as v1.2.3"
	grep -q "^const latest = \"${BASH_REMATCH[1]}\"$" internal/test/frozen/schema_test.go || fail "the schema of ${BASH_REMATCH[1]} is not frozen: see CONTRIBUTING.md"
	heading=$(awk '/^## \[Unreleased\]/ { found = 1; next } found && NF { print; exit }' CHANGELOG.md)
	[[ $heading =~ ^"## [${1#v}] - "20[0-9]{2}-[0-9]{2}-[0-9]{2}$ ]] || fail "below an empty Unreleased, CHANGELOG.md does not begin with \"## [${1#v}] - YYYY-MM-DD\""
	[ -n "$(notes "$1")" ] || fail "CHANGELOG.md has nothing below \"$heading\""
}

# lead_to writes a tag into the links to this repository. Registries take docs/ from the tag, and main has the pages of a later version.
lead_to() {
	local link='(agentjobs/terraform-provider-agent/([a-z]+/)?)main\b'
	git grep -lE "$link" -- . ':!internal/tools' | xargs sed -E -i "s#$link#\1$1#g"
}

tag() {
	ready "$1"
	git merge-base --is-ancestor HEAD origin/main || fail "the last commit is not one of origin/main: merge it, and fetch"
	[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
	git checkout --quiet --detach
	lead_to "$1"
	git commit --quiet --all --message "Links of $1 lead to $1" && git tag "$1"
	git checkout --quiet -
	echo "To release it: git push origin $1"
}

tagged() {
	ready "$1"
	tmp=$(mktemp -d)
	trap 'git worktree remove --force "$tmp/main"; rm -rf "$tmp"' EXIT
	git worktree add --quiet --detach "$tmp/main" "$1^"
	git merge-base --is-ancestor "$1^" origin/main && cd "$tmp/main" && lead_to "$1" && git diff --stat --exit-code "$1" ||
		fail "$1 is not a commit of main whose links lead to $1: delete it, and make it with release.sh tag $1"
}

# The registry refuses a SHA256SUMS that lists an SBOM, so they have their own.
sign_sboms() {
	cd "$(dirname "$1")"
	local signature sums
	signature=$(basename "$1")
	sums=${signature%.sig}
	sha256sum -- *.cdx.json >"$sums"
	gpg --batch --local-user "$2" --output "$signature" --detach-sign "$sums"
}

step() { printf '%5ds  %s\n' "$SECONDS" "$*"; }

# quiet runs a command and shows what it prints only when it fails.
quiet() {
	"$@" >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		fail "$* failed"
	}
}

tool() {
	local name=$1
	shift
	quiet go tool -modfile="internal/tools/$name/go.mod" "$name" "$@"
}

# verify_sums checks that a file lists exactly the other files, with their checksums, and its binary signature.
verify_sums() {
	local sums=$1
	shift
	sha256sum --check --strict --quiet "$sums" || fail "$sums is wrong"
	diff <(printf '%s\n' "$@" | sort) <(sed 's/^[^ ]*  //' "$sums" | sort) || fail "$sums does not list exactly what it should"
	! grep -aq 'BEGIN PGP' "$sums.sig" || fail "$sums.sig is armored: the registry accepts binary signatures only"
	quiet gpg --batch --verify "$sums.sig" "$sums"
}

# verify_zip checks that an archive holds the license, an executable built for the platform in its name, and nothing else.
verify_zip() {
	local zip=$1 platform exe setting info
	platform=${zip#"$project"_"$version"_}
	platform=${platform%.zip}
	exe=${project}_v$version
	[ "${platform%_*}" != windows ] || exe=$exe.exe
	[ "$(unzip -Z1 "$zip" | sort)" = "$(printf 'LICENSE\n%s' "$exe")" ] || fail "$zip holds $(unzip -Z1 "$zip")"
	unzip -Z "$zip" "$exe" | grep -q '^-rwxr-xr-x' || fail "$exe in $zip is not executable"
	unzip -p "$zip" "$exe" >"$tmp/exe"
	info=$(go version -m "$tmp/exe")
	for setting in "GOOS=${platform%_*}" "GOARCH=${platform#*_}" CGO_ENABLED=0 -trimpath=true; do
		grep -q "build.$setting\$" <<<"$info" || fail "$zip was not built with $setting"
	done
	! grep -q 'build.vcs' <<<"$info" || fail "$zip was built with settings of git"
}

# verify holds what is in the current folder against the rules of the registry:
# https://developer.hashicorp.com/terraform/registry/providers/publishing
verify() {
	local zips zip
	zips=("${project}_${version}"_*_*.zip)
	[ -f "${zips[0]}" ] || fail "there is no ${zips[0]}"
	# GoReleaser keeps what is already in a draft, whoever put it there.
	diff <(printf '%s\n' "${zips[@]}" "${zips[@]/%/.cdx.json}" "${project}_${version}_"{manifest.json,{,SBOM_}SHA256SUMS{,.sig}} | sort) \
		<(printf '%s\n' * | sort) || fail "these files are missing (<) or unexpected (>)"
	verify_sums "${project}_${version}_SHA256SUMS" "${zips[@]}" "${project}_${version}_manifest.json"
	verify_sums "${project}_${version}_SBOM_SHA256SUMS" "${zips[@]/%/.cdx.json}"
	[ "$(tr -d ' \n' <"${project}_${version}_manifest.json")" = '{"version":1,"metadata":{"protocol_versions":["6.0"]}}' ] ||
		fail "terraform-registry-manifest.json: not version 1 with protocol 6.0"
	for zip in "${zips[@]}"; do
		verify_zip "$zip"
		grep -q '"bomFormat": "CycloneDX"' "$zip.cdx.json" && grep -q 'github.com/hashicorp/terraform-plugin-framework' "$zip.cdx.json" ||
			fail "$zip.cdx.json is no CycloneDX document that names the plugin framework"
	done
}

# draft holds what a draft on GitHub has, and nothing that this machine has built, against the rules of the registry,
# the signatures, and the attestations of the release workflow.
draft() {
	version=${1#v}
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	mkdir "$tmp/draft"
	quiet gh release download "$1" --repo "$GITHUB_REPOSITORY" --dir "$tmp/draft"
	cd "$tmp/draft"
	verify
	local file
	for file in *.zip *.cdx.json *_manifest.json; do
		quiet gh attestation verify "$file" --repo "$GITHUB_REPOSITORY" \
			--signer-workflow "$GITHUB_REPOSITORY/.github/workflows/release.yml" --source-ref "refs/tags/$1"
	done
}

# try_tag makes a tag of the last commit as a maintainer does, and checks that one without its links is refused.
try_tag() {
	git clone --quiet . "$tmp/tagged"
	(
		cd "$tmp/tagged"
		minor=$(sed -n 's/^const latest = "\(.*\)"$/\1/p' internal/test/frozen/schema_test.go)
		git config user.name release-check
		git config user.email release-check@example.invalid
		sed -i "s/^## \[Unreleased\]/&\n\n## [$minor.1] - 2000-01-01\n\n- A test./" CHANGELOG.md
		git commit --quiet --all --message 'A test'
		git update-ref refs/remotes/origin/main HEAD
		for wrong in "$minor.2" 999.0.0 1; do
			! internal/tools/release.sh tag "v$wrong" >"$tmp/log" 2>&1 || fail "v$wrong is tagged without its changelog"
		done
		quiet internal/tools/release.sh tag "v$minor.1"
		git checkout --quiet "v$minor.1"
		quiet internal/tools/release.sh tagged "v$minor.1"
		quiet git tag --force "v$minor.1" HEAD^
		! internal/tools/release.sh tagged "v$minor.1" >"$tmp/log" 2>&1 || fail "a tag whose links lead to main is not noticed"
	)
}

# try_draft checks what is in dist as the workflow checks a draft, with a stand-in for gh, and that it refuses spoilt ones.
try_draft() {
	local uploaded=$tmp/uploaded spoil
	mkdir "$uploaded" "$tmp/bin"
	# GoReleaser renames it only when it publishes.
	cp terraform-registry-manifest.json "$uploaded/${project}_${version}_manifest.json"
	cp "dist/${project}_${version}_"* "$uploaded"
	ls "$uploaded" >"$tmp/attested"
	cat >"$tmp/bin/gh" <<-END
		#!/bin/sh
		case "\$1 \$2" in
		"release download") cp "$uploaded"/* "\$7" ;;
		"attestation verify") grep -Fx "\$3" "$tmp/attested" ;;
		esac
	END
	chmod +x "$tmp/bin/gh"
	PATH=$tmp/bin:$PATH GITHUB_REPOSITORY=owner/name quiet internal/tools/release.sh draft "v$version"
	for spoil in "touch '$uploaded/unexpected'" "echo >>'$uploaded/${project}_${version}_linux_amd64.zip'" "sed -i /manifest/d '$tmp/attested'"; do
		cp -r "$uploaded" "$tmp/good"
		eval "$spoil"
		! PATH=$tmp/bin:$PATH GITHUB_REPOSITORY=owner/name internal/tools/release.sh draft "v$version" >"$tmp/log" 2>&1 ||
			fail "the check of a draft does not notice: $spoil"
		rm -r "$uploaded"
		mv "$tmp/good" "$uploaded"
	done
}

# install_with installs the provider from the mirror with a CLI and runs a job at the simulator.
install_with() {
	local cli=$1
	mkdir "$tmp/module"
	cat >"$tmp/module/main.tf" <<-END
		terraform {
		  required_providers {
		    agent = {
		      source  = "agentjobs/agent"
		      version = "$version"
		    }
		  }
		}

		resource "agent_job" "check" {
		  name   = "release-check"
		  prompt = "Is the release any good?"
		}

		output "completed" {
		  value = agent_job.check.status == "completed" && agent_job.check.pr_link != null
		}
	END
	quiet "$cli" -chdir="$tmp/module" init -input=false -no-color
	quiet "$cli" -chdir="$tmp/module" apply -auto-approve -input=false -no-color
	! grep -q "$AGENT_ADMIN_KEY" "$tmp/log" || fail "apply printed the key"
	quiet "$cli" -chdir="$tmp/module" output -json completed
	[ "$(cat "$tmp/log")" = true ] || fail "the state holds no completed job with its pull request"
	rm -r "$tmp/module"
}

cleanup() {
	[ -z "${simulator:-}" ] || kill "$simulator" || true
	gpgconf --kill all || true # the agent that gpg has started
	rm -rf "$tmp"
}

check() {
	local root commit host folder product number cli clis=0
	root=$(git rev-parse --show-toplevel)
	tmp=$(mktemp -d)
	export GNUPGHOME=$tmp/gpg GPG_FINGERPRINT
	mkdir -m 700 "$GNUPGHOME"
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM

	commit=$(git -C "$root" log -1 --format='%h %s')
	step "clone of $commit; what is not committed is not in it"
	git clone --quiet "$root" "$tmp/clone"
	cd "$tmp/clone"
	step "a tag, and its links"
	try_tag
	step "a throw-away key to sign with"
	# RSA: the registry accepts only that and DSA.
	quiet gpg --batch --passphrase '' --quick-generate-key 'release-check <release-check@example.invalid>' rsa3072 sign never
	GPG_FINGERPRINT=$(gpg --batch --quiet --with-colons --list-keys | awk -F: '/^fpr/ { print $10 }')
	step "cyclonedx-gomod, then goreleaser check (the first time many minutes: both are built)"
	tool cyclonedx-gomod version # before GoReleaser runs it for several executables at once
	tool goreleaser check
	step "goreleaser release --snapshot: every platform, SBOMs, signatures (minutes)"
	tool goreleaser release --snapshot --clean --timeout=24h
	version=$(sed 's/.*"version": *"\([^"]*\)".*/\1/' dist/metadata.json)

	step "the registry's rules, as the workflow checks a draft"
	try_draft

	step "the same again, from a clone elsewhere"
	mkdir "$tmp/elsewhere"
	git clone --quiet "$tmp/clone" "$tmp/elsewhere/another-clone"
	cd "$tmp/elsewhere/another-clone"
	tool goreleaser release --snapshot --clean --timeout=24h --skip=sbom,sign
	diff "$tmp/clone/dist/${project}_${version}_SHA256SUMS" "dist/${project}_${version}_SHA256SUMS" || fail "two builds differ"
	step "and this platform's executable, as the tests build it, from an empty build cache"
	go build -o "$tmp/" ./internal/simulator/cmd/simulator ./internal/tools/tfcli/cmd/tfcli
	GOCACHE=$tmp/cache quiet "$tmp/tfcli" build "$version" "$tmp/exe"
	unzip -p "dist/${project}_${version}_$(go env GOOS)_$(go env GOARCH).zip" "${project}_v$version" |
		cmp - "$tmp/exe" || fail "the executable differs from one built with an empty build cache"

	# A source address without a host is short for one of these, by product.
	for host in registry.terraform.io registry.opentofu.org; do
		folder=$tmp/mirror/$host/agentjobs/agent
		mkdir -p "$folder"
		cp "$tmp/clone/dist/"*.zip "$folder"
	done
	"$tmp/tfcli" list >"$tmp/clis"
	unset "${!TF_@}" "${!AGENT_@}" # the user's settings for CLI and provider
	# From the mirror, and nothing from anywhere else.
	printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$tmp/mirror" >"$tmp/cli.tfrc"
	export TF_CLI_CONFIG_FILE=$tmp/cli.tfrc CHECKPOINT_DISABLE=1
	"$tmp/simulator" -listen 127.0.0.1:0 -duration 0s -key canary_release_check >"$tmp/env" 2>"$tmp/requests" &
	simulator=$!
	until grep -q AGENT_PROJECT_ID "$tmp/env"; do sleep 0.1; done
	# shellcheck source=/dev/null
	. "$tmp/env"
	while read -r product number cli <&3; do
		step "$product $number: install from a mirror, apply"
		install_with "$cli"
		clis=$((clis + 1))
	done 3<"$tmp/clis"
	[ "$clis" -gt 0 ] || fail "no CLI to install with: make clis builds two"
	# The executable names its version: the release build sets it.
	[ "$(grep -c " POST .* 201 .*$project/$version " "$tmp/requests")" = "$clis" ] ||
		fail "not one job for each CLI, by version $version: $(cat "$tmp/requests")"

	cat "$tmp/clone/dist/${project}_${version}_SHA256SUMS"
	step "Two builds were identical, $clis CLIs installed the release. Nothing was published."
}

case "${1:-} $#" in
"check 1") check ;;
"notes 2") notes "$2" ;;
"tag 2") tag "$2" ;;
"tagged 2") tagged "$2" ;;
"draft 2") draft "$2" ;;
"sign-sboms 3") sign_sboms "$2" "$3" ;;
*) sed -n 's/^# usage: //p; s/^#      //p' "$0" >&2 && exit 2 ;;
esac
