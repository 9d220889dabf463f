# A bucket for states and journals, and two roles for each repository. Apply it once, apart from your jobs. It was never
# applied.
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "bucket" {
  type = string
}

variable "issuer" {
  description = "Host that issues the pipelines' ID tokens, such as gitlab.com. The account must have it as an OIDC provider."
  type        = string
  default     = "token.actions.githubusercontent.com"
}

variable "repositories" {
  description = <<-EOT
    By name, with which those of the repository's two roles begin:
    prefixes: Folders of its states, as in the keys of its backends.
    plan, apply: Claims "sub" of the tokens that may assume each role; * matches anything.
    GitHub: repo:OWNER/NAME:environment:agent-plan, and ...:agent-apply, which only the protected branch may use.
    Newer repositories have OWNER@ID/NAME@ID there: gh api repos/OWNER/NAME/actions/oidc/customization/sub shows it.
    GitLab: project_path:GROUP/PROJECT:ref_type:branch:ref:*, and ...:ref:main, the protected branch.
    Such as: { docs = { prefixes = ["agent"], plan = ["repo:acme/docs:environment:agent-plan"], apply = ["repo:acme/docs:environment:agent-apply"] } }
  EOT
  type = map(object({
    prefixes = list(string)
    plan     = list(string)
    apply    = list(string)
  }))

  validation { # or one repository could write the journal of another
    condition = alltrue([
      for a in flatten(values(var.repositories)[*].prefixes) :
      can(regex("^[\\w.-]+(/[\\w.-]+)*$", a)) && 1 == length([for b in flatten(values(var.repositories)[*].prefixes) : b if startswith("${b}/", "${a}/")])
    ])
    error_message = "A prefix is letters, digits, and ._- between slashes, and none is below another."
  }
}

# The statements list the whole bucket, as the backend needs it. They cover the default workspace; the states of others are
# below env:/, and their journals below the same key.
locals {
  roles = merge([for name, repository in var.repositories : {
    for kind in ["plan", "apply"] : "${name}-agent-${kind}" => {
      subjects = repository[kind]
      statements = flatten([for prefix in repository.prefixes :
        jsondecode(replace(replace(file("${path.module}/${kind}.json"),
          ":::ci-state/agent/", ":::${var.bucket}/${prefix}/"),
          ":::ci-state\"", ":::${var.bucket}\""
        )).Statement
      ])
    }
  }]...)
}

# S3 encrypts every object by itself.
resource "aws_s3_bucket" "state" {
  bucket = var.bucket

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_public_access_block" "state" {
  bucket                  = aws_s3_bucket.state.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_policy" "tls" {
  bucket = aws_s3_bucket.state.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.state.arn, "${aws_s3_bucket.state.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

resource "aws_s3_bucket_versioning" "state" {
  bucket = aws_s3_bucket.state.id

  versioning_configuration {
    status = "Enabled"
  }
}

# Deletes earlier versions of states and records 90 days later. Nothing that is current expires: a record matters as long
# as its name is used, and no prefix has the records of all states without the states.
resource "aws_s3_bucket_lifecycle_configuration" "state" {
  bucket     = aws_s3_bucket.state.id
  depends_on = [aws_s3_bucket_versioning.state]

  rule {
    id     = "noncurrent"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 90
    }

    expiration {
      expired_object_delete_marker = true
    }
  }
}

data "aws_iam_openid_connect_provider" "ci" {
  url = "https://${var.issuer}"
}

data "aws_iam_policy_document" "trust" {
  for_each = local.roles

  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]

    principals {
      type        = "Federated"
      identifiers = [data.aws_iam_openid_connect_provider.ci.arn]
    }

    condition {
      test     = "StringEquals"
      variable = "${var.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }

    condition {
      test     = "StringLike"
      variable = "${var.issuer}:sub"
      values   = each.value.subjects
    }
  }
}

resource "aws_iam_role" "ci" {
  for_each = local.roles

  name               = each.key
  assume_role_policy = data.aws_iam_policy_document.trust[each.key].json
}

resource "aws_iam_role_policy" "ci" {
  for_each = local.roles

  name   = "state-and-journal"
  role   = aws_iam_role.ci[each.key].id
  policy = jsonencode({ Version = "2012-10-17", Statement = each.value.statements })
}

output "roles" {
  description = "AWS_ROLE_ARN of each repository's environments agent-plan and agent-apply, or AWS_PLAN_ROLE_ARN and AWS_APPLY_ROLE_ARN in GitLab."
  value       = { for name, role in aws_iam_role.ci : name => role.arn }
}
