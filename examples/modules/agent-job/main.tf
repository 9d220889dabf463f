locals {
  # Line ends are left out, because they differ between checkouts. What is no text is taken as it is.
  triggers = var.files == null ? var.triggers : merge(var.triggers, {
    files = sha256(join("\n", [for name in var.files :
      "${try(sha256(replace(file("${path.root}/${name}"), "\r\n", "\n")), filesha256("${path.root}/${name}"))} ${name}"
    ]))
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
