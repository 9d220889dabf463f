#!/usr/bin/env bash
# The steps of the pipelines of GitHub and GitLab: install, prepare, plan, apply, report. Only plan and apply use the key.
set -euo pipefail

export -n AGENT_ADMIN_KEY TOKEN
readonly temp=$AGENT_DIR-work
readonly work=${DIRECTORY:-$temp} # of Terraform
export TF_CLI_CONFIG_FILE=$AGENT_DIR/mirror.tfrc TF_IN_AUTOMATION=true TF_INPUT=false TF_VAR_checkout=$PWD
if [ -e "$temp/change.diff" ]; then export TF_VAR_change=$temp/change.diff; fi

if [ -n "${GITHUB_ACTIONS-}" ]; then
  server=$GITHUB_SERVER_URL api=$GITHUB_API_URL header="Authorization: Bearer ${TOKEN-}"
  run=$server/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
  repository=repos/$GITHUB_REPOSITORY
  merged=$repository/commits/$GITHUB_SHA/pulls # the pull requests that brought this commit
  pulls=issues edit=PATCH
else
  server=$CI_SERVER_URL api=$CI_API_V4_URL header="PRIVATE-TOKEN: ${TOKEN-}"
  run=$CI_PIPELINE_URL
  repository=projects/$CI_PROJECT_ID
  merged=$repository/repository/commits/$CI_COMMIT_SHA/merge_requests
  pulls=merge_requests edit=PUT
fi

api() { # METHOD PATH [FILE]
  curl --silent --show-error --fail --max-time 30 --request "$1" --header @- --header "Content-Type: application/json" \
    ${3:+--data "@$3"} "$api/$2" <<< "$header"
}

tf() { terraform -chdir="$work" "$@"; }

fail() {
  echo "Error: $*" | tee "$temp/plan.txt" >&2
  exit 1
}

install() { # SOURCE
  XDG_CACHE_HOME=$AGENT_DIR-build make -C "$1" install
  mv "$AGENT_DIR-build/terraform-provider-agent/installed" "$AGENT_DIR"
  sed -i "s|$AGENT_DIR-build/terraform-provider-agent/installed|$AGENT_DIR|" "$AGENT_DIR/mirror.tfrc"
  cp "$1"/examples/guides/pipelines/{run.sh,main.tf} "$AGENT_DIR"
}

# The patches since a commit, without those of the agent: its pull requests start no further one.
change() {
  local paths
  read -ra paths <<< "$DIFF"
  git merge-base --is-ancestor "$SINCE" HEAD || fail "No history from the commit \"$SINCE\" to this one. Set the input since."
  git log --reverse --no-merges --format="%H %an <%ae>" "$SINCE..HEAD" -- "${paths[@]}" > "$temp/commits"
  { grep --invert-match --fixed-strings --ignore-case -e "${AUTHOR:-$'\t'}" "$temp/commits" || true; } | cut -d " " -f 1 > "$temp/others"
  [ -s "$temp/others" ] || return 0
  # Terraform reads UTF-8 only, and jq replaces what is not.
  git log --no-walk=unsorted --stdin --patch --format="%n%s%n" -- "${paths[@]}" < "$temp/others" | jq --raw-input --raw-output --slurp . > "$temp/change.diff"
  [ "$(wc -c < "$temp/change.diff")" -le 200000 ] || fail "The change since $SINCE is too large to send. Set the input diff to fewer paths, or since to a later commit."
}

prepare() {
  rm -rf "$temp"
  mkdir -p "$temp"
  if [ -n "${DIFF-}" ]; then
    change
    if [ ! -e "$temp/change.diff" ]; then
      echo "Nothing to send: no changes in $DIFF, but those of $AUTHOR." | tee "$temp/nothing"
      return
    fi
  fi
  if [ -z "${DIRECTORY-}" ]; then cp "$AGENT_DIR/main.tf" "$work"; fi
  if [ -n "${BACKEND-}" ]; then printf 'terraform {\n%s\n}\n' "$BACKEND" > "$work/agent_backend.tf"; fi
  tf init
}

# Whether a pull request is open: true, false, or unknown if it is elsewhere or the token cannot read it.
is_open() { # LINK
  local path=${1#"$server"/} state=
  if [ "$path" = "$1" ]; then
    path=
  elif [[ $path =~ ^([^/]+/[^/]+)/pull/([0-9]+)$ ]]; then
    path=repos/${BASH_REMATCH[1]}/pulls/${BASH_REMATCH[2]}
  elif [[ $path =~ ^(.+)/-/merge_requests/([0-9]+)$ ]]; then
    path=projects/${BASH_REMATCH[1]//\//%2F}/merge_requests/${BASH_REMATCH[2]}
  fi
  if [ -n "$path" ]; then state=$(api GET "$path" | jq --raw-output .state) || state=; fi
  case $state in
    open | opened) echo true ;;
    "") echo unknown ;;
    *) echo false ;;
  esac
}

changes() { # FILTER: of the plan's changes of jobs
  jq --raw-output '.resource_changes[]? | select(.type == "agent_job" and .mode == "managed") | '"$1" "$temp/plan.json"
}

plan_once() {
  AGENT_ADMIN_KEY=${AGENT_ADMIN_KEY-} tf plan -no-color -lock-timeout=5m -out="$temp/tfplan" "$@" 2>&1 | tee "$temp/plan.txt"
  tf show -json "$temp/tfplan" > "$temp/plan.json"
}

plan() {
  if [ -e "$temp/nothing" ]; then return; fi
  local link address again=() options=()
  if [ -n "${PULL-}" ]; then options=(-lock=false); fi # its role cannot lock, and an apply may hold the lock
  plan_once "${options[@]}"
  # A message continues an open pull request. Once that is merged or closed, another job opens the next one.
  while IFS=$'\t' read -r link address; do
    case $(is_open "$link") in
      false) again+=("-replace=$address") ;;
      unknown) echo "Cannot tell whether $link is open, so $address gets a message." ;;
    esac
  done < <(changes 'select(.change.actions == ["update"] and .change.after.messages > .change.before.messages and .change.before.pr_link) |
    "\(.change.before.pr_link)\t\(.address)"')
  # Where only the state is kept, one apply stores the id, and the next one waits.
  if [ -z "${PULL-}${DIRECTORY-}" ] && [[ ${BACKEND-} == *'"http"'* ]] && [ -n "$(changes 'select(.change.actions != ["no-op"])')" ]; then
    again+=(-var=wait=false)
    touch "$temp/two"
  fi
  if [ "${#again[@]}" -gt 0 ]; then plan_once "${options[@]}" "${again[@]}"; fi
}

# exec, because GitHub interrupts only the process of the step.
apply() {
  if [ -e "$temp/nothing" ]; then return; fi
  export AGENT_ADMIN_KEY
  if [ -e "$temp/two" ]; then
    tf apply -lock-timeout=5m "$temp/tfplan"
    export AGENT_MAX_NEW_JOBS=0 AGENT_MAX_MESSAGES=0
    exec terraform -chdir="$work" apply -lock-timeout=5m -auto-approve
  fi
  exec terraform -chdir="$work" apply -lock-timeout=5m "$temp/tfplan"
}

# Writes the report into the pull request's comment: there is one, which each run updates.
comment() { # NUMBER
  local marker id path=$repository/$pulls/$1
  marker="<!-- agent $AGENT_PROJECT_ID ${TF_VAR_name-} -->"
  if [ "$pulls" = issues ]; then path+=/comments; else path+=/notes; fi
  { echo "$marker" && cat "$temp/report.md"; } | jq --raw-input --slurp '{body: .}' > "$temp/comment.json"
  id=$(api GET "$path?per_page=100&sort=asc&order_by=created_at" | jq --arg marker "$marker" 'first(.[] | select(.body | startswith($marker)) | .id)')
  if [ -z "$id" ]; then
    api POST "$path" "$temp/comment.json" > "$temp/response"
  else
    if [ "$pulls" = issues ]; then path=$repository/issues/comments; fi
    api "$edit" "$path/$id" "$temp/comment.json" > "$temp/response"
  fi
}

report() {
  local changed=false link message="" pull=${PULL-}
  if [ -e "$temp/nothing" ]; then
    message=$(cat "$temp/nothing")
  elif [ "$STATUS" != success ]; then
    message="Failed. Its log says what to do: $run"
  elif [ -n "$pull" ]; then
    message=$(grep -E "^(Plan:|No changes)" "$temp/plan.txt" || true)
  else
    # What the service has chosen leaves neither its line nor Markdown.
    tf show -json | jq '[.. | objects | select(.type? == "agent_job" and .mode? == "managed" and (has("deposed_key") | not)) | .values]' > "$temp/jobs.json"
    message=$(jq --raw-output 'map("\(.name): \(.status), \(.pr_link // "no pull request")") | join("; ")' "$temp/jobs.json" | tr -cd "[:alnum:] .,:;/?=&%~_+-")
    link=$(jq --raw-output 'map(.pr_link // empty) | unique | if length == 1 then first else "" end' "$temp/jobs.json")
    if [ -n "$(changes 'select(.change.actions != ["no-op"])')" ]; then changed=true; fi
  fi
  {
    echo "**Documentation agent:** $message"
    if [ -e "$temp/plan.json" ]; then
      changes 'select((.change.actions | index("create")) and .change.before.pr_link and .change.after.id != .change.before.id) | .change.before.pr_link' | while read -r link; do
        if [ "$(is_open "$link")" != false ]; then printf '\n%s belongs to the job before, and stays as it is. Close it if this one takes its place.\n' "$link"; fi
      done
    fi
    if [ -s "$temp/plan.txt" ]; then printf '\n[Run](%s)\n\n' "$run" && head -c 50000 "$temp/plan.txt" | sed "s/^/    /"; fi
  } > "$temp/report.md"
  {
    cat "$temp/report.md"
    if [ -n "${DIRECTORY-}" ]; then
      :
    elif [ -z "${BACKEND-}" ]; then
      printf '\nNo backend is set, so this run knows nothing of earlier ones: each starts another job, and so does a re-run.\n'
    elif [[ $BACKEND == *'"http"'* ]]; then
      printf '\nThis backend keeps no journal: a job whose run is killed before its state is stored is paid for again.\n'
    fi
  } | tee -a "${GITHUB_STEP_SUMMARY:-$temp/summary.md}"
  if [ -z "${GITHUB_ACTIONS-}" ]; then
    printf 'AGENT_MESSAGE=%s\nAGENT_PULL_REQUEST=%s\nAGENT_CHANGED=%s\n' "$message" "${link-}" "$changed" > agent.env
  else
    printf 'message=%s\npull_request=%s\nchanged=%s\n' "$message" "${link-}" "$changed" >> "$GITHUB_OUTPUT"
  fi
  if [ -z "${TOKEN-}" ]; then
    echo "No token, so no comment."
    return
  fi
  if [ -z "$pull" ] && [ "${EVENT-}" = push ] && { [ "$changed" = true ] || [ "$STATUS" != success ]; }; then
    pull=$(api GET "$merged" | jq '.[0] | .iid // .number // empty') || pull=
  fi
  if [ -n "$pull" ]; then comment "$pull" || echo "The comment could not be written."; fi
}

"$@"
