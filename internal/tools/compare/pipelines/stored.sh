# Stores the id, and a mark before it sends. A run that finds only the mark stops, because a job may have been started.
set -euo pipefail
call() { curl --silent --show-error -H "Authorization: Bearer $TF_VAR_key" -H "Content-Type: application/json" "$@"; }
field() { sed -E 's/.*"'"$1"'":"([^"]*)".*/\1/' "$2"; }
jobs=$TF_VAR_base_url/v2/agent/proj/job
if [ -e sending ]; then
  echo "Look for the job in the dashboard. If there is one, write its id to the file id. Then delete the file sending." >&2
  exit 1
fi
if [ "$(cat prompt 2>/dev/null)" != "$TF_VAR_prompt" ]; then
  rm -f id
  printf %s "$TF_VAR_prompt" > prompt
fi
if [ ! -s id ]; then
  touch sending
  code=$(call "$jobs" -d '{"prompt": "'"$TF_VAR_prompt"'"}' -o job -w '%{http_code}')
  case $code in
    2??) field id job > id ;;
    408|499) exit 1 ;; # a proxy may have passed it on
    4??) rm sending && exit 1 ;; # refused: nothing was started
    *) exit 1 ;;
  esac
  rm sending
fi
status=active
while [ "$status" = active ]; do
  sleep 1
  call --fail --retry 3 "$jobs/$(cat id)" -o job # repeating a GET starts nothing
  status=$(field status job)
done
[ "$status" = completed ]
