# In a folder whose path is the input "directory": the prompt has an output of another resource, here a stand-in for one.
terraform {
  required_providers {
    agent = {
      source  = "agentjobs/agent"
      version = "~> 0.1"
    }
  }
}

resource "terraform_data" "queue" {
  input = "https://queue.example.com/orders"
}

resource "agent_job" "queue" {
  name   = "queue"
  prompt = "Document that orders are now at ${terraform_data.queue.output}"

  triggers = { address = terraform_data.queue.output } # another address is another job
}
