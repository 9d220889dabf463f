# As restful.tf, but a second resource waits. So the state has the job's id before the wait begins.
terraform {
  required_providers {
    restful = { source = "magodo/restful" }
  }
}

variable "base_url" {}
variable "key" {}
variable "prompt" {}

provider "restful" {
  base_url = var.base_url
  security = { http = { token = { token = var.key } } }
}

provider "restful" {
  alias    = "wait" # repeats requests, which a create must not
  base_url = var.base_url
  security = { http = { token = { token = var.key } } }
  client   = { retry = { status_codes = [429, 502, 503, 504] } }
}

resource "restful_resource" "test" {
  path             = "/v2/agent/proj/job"
  body             = { prompt = var.prompt }
  write_only_attrs = ["prompt"]
  read_path        = "$(path)/$(body.id)"
  update_method    = "POST"
  update_path      = "$(path)/$(body.id)/message"
}

resource "restful_operation" "wait" {
  provider = restful.wait
  path     = restful_resource.test.id
  method   = "GET"
  poll = {
    status_locator    = "body.status"
    status            = { success = "completed", pending = ["active"] }
    default_delay_sec = 1
  }

  lifecycle {
    replace_triggered_by = [restful_resource.test] # waits again after a message
  }
}
