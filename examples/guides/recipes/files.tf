locals {
  groups = {
    cli = fileset(path.root, "cli/**/*.go")
    sdk = fileset(path.root, "sdk/**/*.py")
  }
}

module "reference" {
  # Until there is a release, a commit stands after "ref=".
  source   = "git::https://github.com/agentjobs/terraform-provider-agent.git//examples/modules/agent-job?ref=v0.1.0"
  for_each = local.groups

  name    = "reference-${each.key}"
  prompt  = templatefile("${path.module}/files.tftpl", { group = each.key, files = each.value })
  files   = each.value # a change of one starts a new job, for this group only
  timeout = "20m"
}

output "message" {
  value = join(", ", [for group, job in module.reference : "${group}: ${coalesce(job.pr_link, job.status)}"])
}
