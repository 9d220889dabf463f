#!/bin/sh
# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Runs a command with an S3 server that exists only for it: MinIO, built from source
# into the user's cache folder the first time. AGENT_TEST_S3 tells the command the
# bucket, as a journal URL; AWS_* variables hold the credentials. If AGENT_TEST_S3 is
# already set, the command runs unchanged and uses that server.
set -eu

if [ -n "${AGENT_TEST_S3:-}" ]; then
	exec "$@"
fi

minio=$(go -C "$(dirname "$0")" run ./source/cmd/build minio)
tmp=$(mktemp -d)
server=
cleanup() {
	trap '' HUP INT TERM
	# SIGKILL: a clean shutdown takes a second, and the data is removed anyway.
	[ -z "$server" ] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
# These run when the command ends: Ctrl-C reaches the command directly.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
random() {
	od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'
}
AWS_ACCESS_KEY_ID=$(random 8)
AWS_SECRET_ACCESS_KEY=$(random 16)
export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY

mkdir -p "$tmp/data/agent-test" # a folder there is a bucket
: >"$tmp/log"
# Without any environment, so that no setting of the user's changes the server.
env -i HOME="$tmp" MINIO_ROOT_USER="$AWS_ACCESS_KEY_ID" MINIO_ROOT_PASSWORD="$AWS_SECRET_ACCESS_KEY" \
	MINIO_BROWSER=off MINIO_UPDATE=off \
	"$minio" server --address 127.0.0.1:0 "$tmp/data" >"$tmp/log" 2>&1 </dev/null &
server=$!

# MinIO chooses a free port, and prints it once it accepts requests.
endpoint=
tries=60
while [ -z "$endpoint" ]; do
	if [ "$tries" = 0 ] || ! kill -0 "$server" 2>/dev/null; then
		echo "MinIO did not start:" >&2
		cat "$tmp/log" >&2
		exit 1
	fi
	tries=$((tries - 1))
	sleep 1
	endpoint=$(sed -n 's/^API: \(http:[^ ]*\) .*/\1/p' "$tmp/log")
done

export AGENT_TEST_S3="s3://agent-test?region=us-east-1&endpoint=$endpoint"
"$@"
