locals {
  triggers = var.files == null ? var.triggers : merge(var.triggers, {
    files = sha256(join("\n", [for file in var.files : "${filesha256("${path.root}/${file}")} ${file}"]))
  })
}

resource "agent_job" "this" {
  name       = var.name
  prompt     = var.prompt
  project_id = var.project_id
  triggers   = local.triggers

  wait {
    on_failure = var.on_failure
  }

  timeouts {
    create = var.timeout
    update = var.timeout
  }
}
