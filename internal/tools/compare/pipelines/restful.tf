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

locals {
  poll = {
    status_locator    = "body.status"
    status            = { success = "completed", pending = ["active"] }
    url_locator       = null # after a create, the path of the resource
    default_delay_sec = 1
  }
}

resource "restful_resource" "test" {
  path             = "/v2/agent/proj/job"
  body             = { prompt = var.prompt }
  write_only_attrs = ["prompt"]
  read_path        = "$(path)/$(body.id)"
  poll_create      = local.poll
  update_method    = "POST"
  update_path      = "$(path)/$(body.id)/message"
  poll_update      = merge(local.poll, { url_locator = "body.!\"/v2/agent/proj/job/$(body.id)\"" })
}
