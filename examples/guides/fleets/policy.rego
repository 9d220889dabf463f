# Refuses a plan that starts too many jobs, sends too many messages, or names another project.
package agent

max_new_jobs := 20

max_messages := 20

allowed_projects := {"proj_123", "proj_456"}

jobs := [job | some job in input.resource_changes; job.mode == "managed"; job.type == "agent_job"]

# A create whose id is known adopts that job, and sends nothing.
new_jobs := [job.address | some job in jobs; "create" in job.change.actions; not job.change.after.id]

actions := [action | some action in input.action_invocations; action.type in {"agent_start_job", "agent_send_message"}]

started := [action.address | some action in actions; action.type == "agent_start_job"]

messages := [job.address |
	some job in jobs
	"update" in job.change.actions
	may_send(job.change)
]

may_send(change) if change.after_unknown.messages

may_send(change) if change.after.messages > change.before.messages

sent := [action.address | some action in actions; action.type == "agent_send_message"]

# What is not known before the apply is refused, and so is the default project of an action, which no plan shows.
project[job.address] := object.get(job.change.after, "project_id", null) if {
	some job in jobs
	some action in job.change.actions
	action in {"create", "update"}
}

project[action.address] := object.get(action, ["config_values", "project_id"], null) if some action in actions

deny contains "The input is not a plan." if not input.planned_values

deny contains sprintf("%d new jobs, and at most %d are allowed.", [total, max_new_jobs]) if {
	total := count(new_jobs) + count(started)
	total > max_new_jobs
}

deny contains sprintf("%d messages, and at most %d are allowed.", [total, max_messages]) if {
	total := count(messages) + count(sent)
	total > max_messages
}

deny contains sprintf("%s: the project %v is not allowed.", [address, id]) if {
	some address, id in project
	not id in allowed_projects
}
