# After an outage: lists all creates whose outcome is unknown, each with the id that gives it up. Import the jobs that exist, delete
# their lines, and give up the rest, which starts their jobs again:
#   AGENT_JOURNAL_FORGET=$(cut -d ' ' -f 1 unknown.txt | paste -sd , -) terraform apply
terraform plan -json |
  jq -r 'select(.diagnostic.summary == "Outcome of agent job create unknown").diagnostic |
    "\(.detail | capture("AGENT_JOURNAL_FORGET=(?<id>[a-z2-7]+)").id) \(.address)"' >unknown.txt
