# What most pipelines have: it starts a job and polls it.
set -euo pipefail
call() {
  curl --fail --silent --show-error --retry 3 --retry-delay 1 \
    -H "Authorization: Bearer $TF_VAR_key" -H "Content-Type: application/json" "$@"
}
field() { sed -E 's/.*"'"$1"'":"([^"]*)".*/\1/'; }
jobs=$TF_VAR_base_url/v2/agent/proj/job
id=$(call "$jobs" -d '{"prompt": "'"$TF_VAR_prompt"'"}' | field id)
status=active
while [ "$status" = active ]; do
  sleep 1
  status=$(call "$jobs/$id" | field status)
done
[ "$status" = completed ]
