// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package job

import "sync"

// newNames are the names of new jobs in their projects, by the project and the name.
type newNames struct {
	mu      sync.Mutex
	prompts map[[2]string]string // hashes of those that were planned
	started map[[2]string]bool
}

func (m *jobModel) projectAndName() [2]string {
	return [2]string{m.ProjectID.ValueString(), m.Name.ValueString()}
}

// plan reports whether no other resource seems to plan a new job with this name. A host may plan one resource
// more than once, so only another prompt shows that there are two, or that the prompt depends on what was refreshed.
func (n *newNames) plan(job *jobModel) bool {
	prompt := job.promptHash()
	if prompt == "" || job.ProjectID.IsUnknown() || job.Name.IsUnknown() {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.prompts == nil {
		n.prompts = map[[2]string]string{}
	}
	planned := n.prompts[job.projectAndName()]
	n.prompts[job.projectAndName()] = prompt
	return planned == "" || planned == prompt
}

// start reports whether no other resource has started a job with this name.
func (n *newNames) start(job *jobModel) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if job.Name.IsNull() || n.started[job.projectAndName()] {
		return job.Name.IsNull()
	}
	if n.started == nil {
		n.started = map[[2]string]bool{}
	}
	n.started[job.projectAndName()] = true
	return true
}

// end follows a create that failed, or a destroy.
func (n *newNames) end(job *jobModel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.started, job.projectAndName())
	delete(n.prompts, job.projectAndName())
}
