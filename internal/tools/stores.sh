#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs a command with stores that exist only for it: MinIO and versitygw, which are S3
# servers, and Azurite, if npm is there. They are built or installed into the user's cache
# folder the first time. AGENT_TEST_S3, AGENT_TEST_S3_SECOND and AGENT_TEST_AZBLOB tell the
# command a bucket of each, as a journal URL; AWS_* variables and ARM_ACCESS_KEY hold the
# credentials. If AGENT_TEST_S3 is already set, the command runs unchanged and uses that
# server only.
set -eu

if [ -n "${AGENT_TEST_S3:-}" ]; then
	exec "$@"
fi

built=$(go -C "$(dirname "$0")" run ./source/cmd/build minio versitygw)
minio=$(echo "$built" | sed -n 1p)
versitygw=$(echo "$built" | sed -n 2p)
cache=$(dirname "$(dirname "$minio")")
tmp=$(mktemp -d)
servers=
new=
cleanup() {
	trap '' HUP INT TERM
	for server in $servers; do # SIGKILL: a clean shutdown takes a second, and the data is removed anyway.
		{ kill -KILL "$server" && wait "$server"; } 2>/dev/null || true
	done
	rm -rf "$tmp" ${new:+"$new"}
}
trap cleanup EXIT
# These run when the command ends: Ctrl-C reaches the command directly.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

for name in $(env | sed -n 's/^\(\(AWS\|ARM\|AZURE\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
random() {
	od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'
}
AWS_ACCESS_KEY_ID=$(random 8)
AWS_SECRET_ACCESS_KEY=$(random 16)
export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY

# start starts a server without any environment, so that no setting of the user's changes it.
start() {
	log=$tmp/$1
	: >"$log"
	shift
	env -i HOME="$tmp" PATH="$PATH" "$@" >"$log" 2>&1 </dev/null &
	server=$!
	servers="$servers $server"
}
# until_ready waits until a command succeeds.
until_ready() {
	tries=60
	until "$@"; do
		if [ "$tries" = 0 ] || ! kill -0 "$server" 2>/dev/null; then
			echo "a server did not start:" >&2
			cat "$log" >&2
			exit 1
		fi
		tries=$((tries - 1))
		sleep 1
	done
}
# prints_url reads the URL that a server prints once it accepts requests.
prints_url() {
	url=$(sed -n "s/^$1\(http:[^ ]*\).*/\1/p" "$log")
	[ -n "$url" ]
}

mkdir -p "$tmp/minio/agent-test" # a folder there is a bucket
start minio.log MINIO_ROOT_USER="$AWS_ACCESS_KEY_ID" MINIO_ROOT_PASSWORD="$AWS_SECRET_ACCESS_KEY" MINIO_BROWSER=off MINIO_UPDATE=off \
	"$minio" server --address 127.0.0.1:0 "$tmp/minio"
until_ready prints_url 'API: '
export AGENT_TEST_S3="s3://agent-test?region=us-east-1&endpoint=$url"

# versitygw does not print the port that it chooses, nor when it accepts requests: making a user shows that.
mkdir -p "$tmp/versitygw/agent-test" "$tmp/versions" "$tmp/users"
url=http://127.0.0.1:$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 10000))
start versitygw.log ROOT_ACCESS_KEY_ID="$AWS_ACCESS_KEY_ID" ROOT_SECRET_ACCESS_KEY="$AWS_SECRET_ACCESS_KEY" \
	"$versitygw" --port "${url#http://}" --iam-dir "$tmp/users" posix --versioning-dir "$tmp/versions" "$tmp/versitygw"
make_user() {
	ADMIN_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID ADMIN_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY "$versitygw" admin --endpoint-url "$url" \
		create-user --access agent-user --secret "$AWS_SECRET_ACCESS_KEY" --role user >"$tmp/user.log" 2>&1
}
until_ready make_user
export AGENT_TEST_S3_SECOND="s3://agent-test?region=us-east-1&endpoint=$url"

# Azurite's dependencies are as they were when it was released.
version=3.35.0 released=2025-09-24
azurite=$cache/azurite_$version
if command -v npm >/dev/null && command -v node >/dev/null && [ ! -d "$azurite" ]; then
	echo "installing Azurite $version, for tests only" >&2
	new=$(mktemp -d "$cache/new-XXXXXX")
	npm install --prefix "$new" --ignore-scripts --no-audit --no-fund --loglevel=error --before="$released" "azurite@$version" >&2 &&
		mv "$new" "$azurite"
fi
if [ ! -d "$azurite" ]; then
	echo "Azurite is not installed, because npm is not, or failed: nothing is tried with it" >&2
else
	ARM_ACCESS_KEY=$(random 48) # which is base64, too
	export ARM_ACCESS_KEY
	start azurite.log AZURITE_ACCOUNTS="agenttest:$ARM_ACCESS_KEY" "$azurite/node_modules/.bin/azurite-blob" \
		--blobPort 0 --inMemoryPersistence --disableTelemetry --skipApiVersionCheck --silent
	until_ready prints_url '.* listens on '
	# Its container is made by a request that is signed here, because nothing else here knows Azure.
	node -e '
const [url, key] = process.argv.slice(1), headers = {"x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02"}
const text = "PUT" + "\n".repeat(12) + Object.entries(headers).map(h => h.join(":") + "\n").join("") + "/agenttest/agenttest/agent-test\nrestype:container"
const signature = require("crypto").createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64")
headers.Authorization = "SharedKey agenttest:" + signature
fetch(url + "/agenttest/agent-test?restype=container", {method: "PUT", headers}).then(r => { if (!r.ok) throw Error(r.status) })
' "$url" "$ARM_ACCESS_KEY"
	export AGENT_TEST_AZBLOB="azblob://agenttest/agent-test?endpoint=$url/agenttest"
fi

"$@"
