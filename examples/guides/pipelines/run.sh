#!/usr/bin/env bash
# The pipelines of GitHub and GitLab: install, run and report. Only run has the key.
set -euo pipefail

export -n AGENT_ADMIN_KEY
readonly temp=$AGENT_DIR-work token=${TOKEN-${AGENT_GITLAB_TOKEN-}} kept=${CI_PROJECT_DIR:-$AGENT_DIR-work}/errored
unset TOKEN AGENT_GITLAB_TOKEN
export TF_CLI_CONFIG_FILE=$temp/mirror.tfrc TF_IN_AUTOMATION=true TF_INPUT=false
plans='' pull='' state='' branch=''
mkdir -p "$temp"

if [ -n "${GITHUB_ACTIONS-}" ]; then
  echo "::stop-commands::$(< /proc/sys/kernel/random/uuid)" # whoever wrote what follows, it commands the runner nothing
  api=$GITHUB_API_URL server=$GITHUB_SERVER_URL repository=repos/$GITHUB_REPOSITORY run=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
  branches=branches merged=commits/$GITHUB_SHA/pulls comments=issues edit=PATCH event=$GITHUB_EVENT_NAME
  export TF_VAR_commit=$GITHUB_SHA TF_VAR_ref=$GITHUB_REF_NAME TF_VAR_run=$GITHUB_RUN_ID
  if [ "$GITHUB_REF_TYPE" = branch ]; then branch=$GITHUB_REF_NAME; fi
  IFS=$'\t' read -r plans pull state visibility < <(jq --raw-output '[.pull_request != null or .merge_group != null, .pull_request.number // "-",
    .pull_request.state // "-", if .repository.private == true then "private" else "public" end] | @tsv' "$GITHUB_EVENT_PATH")
  plans=${plans#false} pull=${pull#-}
else
  api=$CI_API_V4_URL server=$CI_SERVER_URL repository=projects/$CI_PROJECT_ID run=$CI_PIPELINE_URL
  branches=repository/branches merged=repository/commits/$CI_COMMIT_SHA/merge_requests comments=merge_requests edit=PUT event=$CI_PIPELINE_SOURCE
  export TF_VAR_commit=$CI_COMMIT_SHA TF_VAR_ref=$CI_COMMIT_REF_NAME TF_VAR_run=$CI_PIPELINE_ID
  branch=${CI_COMMIT_BRANCH-} pull=${CI_MERGE_REQUEST_IID-} plans=${CI_MERGE_REQUEST_IID-} visibility=$CI_PROJECT_VISIBILITY
fi

# Both hosts take this header, and curl sends it to no other host that one redirects to.
api() { # METHOD PATH [FILE]
  curl --silent --show-error --fail --location --max-time 30 --request "$1" --header @- --header "Content-Type: application/json" \
    ${3:+--data "@$3"} "$api/$2" <<< "Authorization: Bearer $token"
}

tf() { terraform -chdir="$DIRECTORY" "$@"; }

# Shows and keeps a log without control characters, which GitLab's log obeys. An interrupt ends Terraform, and not its log.
log() { # NAME
  local line
  trap '' INT TERM
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "${line//[[:cntrl:]]/ }"; done | tee "$temp/$1.txt"
}

stop() { # EXIT_CODE SENTENCE
  echo "$2" | tee "$temp/why"
  exit "$1"
}

# Leaves provider and script in AGENT_DIR, and caches of Go beside it.
install() {
  XDG_CACHE_HOME=$AGENT_DIR GOCACHE=$AGENT_DIR-build make -C "$(dirname "$0")/../../.." install
  mv "$AGENT_DIR"/terraform-provider-agent/installed/m* "$AGENT_DIR" # the mirror and its configuration
  cp "$0" "$AGENT_DIR"
}

# GitLab tells it to the token only.
is_rerun() {
  if [ -n "${GITHUB_ACTIONS-}" ]; then
    [ "$GITHUB_RUN_ATTEMPT" -gt 1 ]
  else
    [ -n "$token" ] && [ "$(api GET "$repository/pipelines/$CI_PIPELINE_ID/jobs?include_retried=true&per_page=100" |
      jq --arg name "$CI_JOB_NAME" 'map(select(.name == $name)) | length')" != 1 ]
  fi
}

# Whether a pull request is known to be merged or closed.
is_over() { # LINK
  local path='' state=''
  if [[ ${1#"$server"} =~ ^/([[:alnum:]._-]+/[[:alnum:]._-]+)/pull/([0-9]+)$ ]]; then
    path=repos/${BASH_REMATCH[1]}/pulls/${BASH_REMATCH[2]}
  elif [[ ${1#"$server"} =~ ^/([[:alnum:]._/-]+)/-/merge_requests/([0-9]+)$ ]]; then
    path=projects/${BASH_REMATCH[1]//\//%2F}/merge_requests/${BASH_REMATCH[2]}
  fi
  if [ -n "$path" ]; then state=$(api GET "$path" | jq --raw-output .state) || state=; fi
  case $state in
    closed | merged | locked) return 0 ;;
    open | opened) return 1 ;;
  esac
  echo "Cannot tell whether $1 is open, so its job gets a message."
  return 1
}

changes() { # FILTER: of the plan's changes of jobs
  jq --raw-output '.resource_changes[]? | select(.type == "agent_job" and .mode == "managed") | '"$1" "$temp/plan.json"
}

plan() {
  AGENT_ADMIN_KEY=$AGENT_ADMIN_KEY tf plan -no-color -out="$temp/tfplan" "$@" 2>&1 | log plan
  tf show -json "$temp/tfplan" > "$temp/plan.json"
}

run() {
  local address again=() backend head link lock=(-lock-timeout=5m)
  if [ "$event" = pull_request_target ] || [ "$state" = closed ]; then
    stop 1 "Nothing was sent: a run on a closed pull request, or on pull_request_target, has the code of another commit. Plan on pull_request, and apply on push."
  elif [ -z "${AGENT_ADMIN_KEY-}" ]; then
    if [ -n "$plans" ]; then stop 0 "Not planned: there is no AGENT_ADMIN_KEY, as pull requests of forks and of Dependabot get no secrets."; fi
    stop 1 "Nothing was sent: there is no AGENT_ADMIN_KEY."
  elif [ -z "$plans" ] && [ -n "$branch" ] && [ "$event" != schedule ] && is_rerun; then
    head=$(api GET "$repository/$branches/$(jq --null-input --raw-output --arg name "$branch" '$name | @uri')" | jq --raw-output '.commit | .sha // .id') || head=
    if [ "$head" != "$TF_VAR_commit" ]; then
      stop 1 "Nothing was sent: this run was started again, and the last commit of $branch is ${head:-unknown}. Start another run there."
    fi
  fi

  sed "s|\"[^\"]*/mirror\"|\"$AGENT_DIR/mirror\"|" "$AGENT_DIR/mirror.tfrc" > "$TF_CLI_CONFIG_FILE" # a cache may be from another folder
  rm -f "$DIRECTORY/errored.tfstate"
  # The entry is that of another build.
  if [ -e "$DIRECTORY/.terraform.lock.hcl" ]; then sed -i '/^provider ".*\/agentjobs\/agent"/,/^}/d' "$DIRECTORY/.terraform.lock.hcl"; fi
  tf init -no-color 2>&1 | log init
  backend=$(cd "$DIRECTORY" && jq --raw-output .backend.type "${TF_DATA_DIR:-.terraform}/terraform.tfstate") || backend=local
  if [[ $backend =~ ^(local|inmem|null|)$ ]]; then
    stop 1 "Nothing was sent: the configuration in $DIRECTORY has no backend that outlives this run, so the next one would start each job again."
  fi

  if [ -n "$plans" ]; then lock=(-lock=false); fi # its role cannot lock, and an apply may hold the lock
  plan "${lock[@]}"
  # A message continues an open pull request. Once that is merged or closed, another job opens the next one.
  while IFS=$'\t' read -r link address; do
    if is_over "$link"; then again+=("-replace=$address"); fi
  done < <(changes 'select(.change.actions == ["update"] and .change.after.messages > .change.before.messages and .change.before.pr_link) |
    "\(.change.before.pr_link)\t\(.address)"')
  if [ "${#again[@]}" -gt 0 ]; then plan "${lock[@]}" "${again[@]}"; fi
  if [ -n "$plans" ]; then return; fi

  export AGENT_ADMIN_KEY
  set -- terraform -chdir="$DIRECTORY" apply -no-color -lock-timeout=5m -parallelism=100 "$temp/tfplan"
  if [ -n "${GITHUB_ACTIONS-}" ]; then exec "$@" > >(log apply) 2>&1; fi # GitHub interrupts only the process of the step
  "$@" 2>&1 | log apply
}

# Stores the state that an apply could not store. If that fails again, a private repository keeps it as an artifact: it has the prompts.
push() {
  if tf state push -lock-timeout=1m errored.tfstate 2>&1 | log push; then
    echo "The state that the apply could not store is stored now."
  elif [ "$visibility" = private ]; then
    mkdir -p "$kept"
    cp "$DIRECTORY/errored.tfstate" "$kept"
    echo "kept=errored.tfstate-${DIRECTORY//[^[:alnum:]]/-}" >> "${GITHUB_OUTPUT:-$temp/kept.txt}"
  fi
  rm "$DIRECTORY/errored.tfstate"
}

# Writes the report into the pull request's comment: there is one, which each run updates.
comment() { # NUMBER
  local id='' page path=$repository/$comments/$1/comments marker="<!-- agent $DIRECTORY -->"
  if [ "$comments" != issues ]; then path=$repository/$comments/$1/notes; fi
  { echo "$marker" && cat "$temp/report.md"; } | jq --raw-input --slurp '{body: .}' > "$temp/comment.json"
  for page in {1..9}; do
    api GET "$path?per_page=100&sort=asc&order_by=created_at&page=$page" > "$temp/comments.json" || return
    id=$(jq --arg marker "$marker" 'first(.[] | select((.user.type? // "Bot") == "Bot" and (.body | startswith($marker))) | .id)' "$temp/comments.json")
    if [ -n "$id" ] || [ "$(jq length "$temp/comments.json")" -lt 100 ]; then break; fi
  done
  if [ -z "$id" ]; then
    api POST "$path" "$temp/comment.json" > "$temp/response"
  else
    api "$edit" "${path/"/$comments/$1/comments"/"/$comments/comments"}/$id" "$temp/comment.json" > "$temp/response"
  fi
}

report() {
  local message='' outcome=failed changed=false link='' links='[]' refused=false
  if [ -e "$temp/apply.txt" ]; then
    if [ -e "$DIRECTORY/errored.tfstate" ]; then push; fi
    if grep --quiet --no-messages "^Warning: Invalid pull request link" "$temp/plan.txt" "$temp/apply.txt"; then refused=true; fi
    tf show -json > "$temp/state.json" || [ "$STATUS" != success ]
    jq --slurp --raw-output --arg status "$STATUS" --argjson refused "$refused" '
      [.[0].values.root_module? // empty | recurse(.child_modules[]?) | .resources[]? |
        select(.type == "agent_job" and .mode == "managed" and (has("deposed_key") | not)) | .values] |
      (map(select(.status == "completed").pr_link // empty) | unique) as $links |
      (if $refused then "its link was refused, or it has none" else "no pull request" end) as $none |
      (map("\(.name): \(.status)\(if .pr_link then ", \(.pr_link)" elif .status == "completed" then ", \($none)" else "" end)") | join("; ") | gsub("\n"; " ")),
      (if any(.status == "archived") then "archived" elif $status != "success" or any(.status == "failed") then "failed"
        elif any(.status != "completed") then "active" elif $refused and any(.pr_link == null) then "link_refused"
        elif $links == [] then "no_pull_request" else "pull_request" end),
      (if $links | length == 1 then $links[0] else "" end),
      ($links | tojson)' "$temp/state.json" > "$temp/jobs.txt"
    { read -r message && read -r outcome && read -r link && read -r links; } < "$temp/jobs.txt"
    if [ "$STATUS" = success ] && [ -n "$(changes 'select(.change.actions != ["no-op"])')" ]; then changed=true; fi
  fi
  if [ -e "$temp/why" ]; then
    message=$(< "$temp/why")
    if [ "$STATUS" = success ]; then outcome=skipped; fi
  elif [ "$STATUS" != success ]; then
    message="Failed. Its log says what to do: $run${message:+; $message}"
  elif [ -n "$plans" ]; then
    outcome=planned message=$(grep -m 1 -E "^(Plan:|No changes)" "$temp/plan.txt") || message="Only outputs change."
  fi
  # What others have named leaves neither its line nor Markdown.
  message=$(jq --raw-input --raw-output --slurp 'gsub("[^\\p{L}\\p{N} .,:;/?=&%~_+-]"; "")' <<< "$message")
  {
    echo "**Documentation agent:** $message"
    if [ -e "$temp/plan.txt" ]; then printf '\n[Run](%s)\n\n' "$run" && sed "s/^/    /" "$temp/plan.txt"; fi
  } > "$temp/all.md"
  head -c 65000 "$temp/all.md" > "$temp/report.md" # GitHub's limit for a comment is a little higher
  cat "$temp/report.md" >> "${GITHUB_STEP_SUMMARY:-$temp/summary.md}"
  printf '%s\n' "message=${message:0:2000}" "outcome=$outcome" "pull_request=$link" "pull_requests=$links" "changed=$changed" | tee "$temp/outputs"
  if [ -n "${GITHUB_ACTIONS-}" ]; then
    cat "$temp/outputs" >> "$GITHUB_OUTPUT"
  else # which accepts 5 kB
    while IFS='=' read -r name value; do echo "AGENT_${name^^}=$value"; done < "$temp/outputs" > agent.env
  fi
  if [ -z "$token" ]; then return; fi
  # The pull request that brought this commit.
  if [ -z "$pull" ] && [ "$event" = push ] && { [ "$changed" = true ] || [ "$STATUS" != success ]; }; then
    pull=$(api GET "$repository/$merged" | jq '.[0] | .iid // .number // empty') || pull=
  fi
  if [ -n "$pull" ]; then comment "$pull" || echo "The comment could not be written."; fi
}

"$@"
