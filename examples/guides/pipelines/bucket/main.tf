# A bucket for the journal, and the role that GitHub Actions assumes to use it. Apply it once, apart from your jobs.
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

variable "repository" {
  description = "OWNER/NAME on GitHub, whose environments agent-plan and agent-apply may use the journal."
  type        = string
}

locals {
  policy = replace(file("${path.module}/../journal-policy.json"), "ci-state", var.bucket)
  rule   = jsondecode(file("${path.module}/../journal-lifecycle.json")).Rules[0]
}

resource "aws_s3_bucket" "journal" {
  bucket = var.bucket

  lifecycle {
    prevent_destroy = true # it may hold lost jobs
  }
}

resource "aws_s3_bucket_public_access_block" "journal" {
  bucket                  = aws_s3_bucket.journal.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_lifecycle_configuration" "journal" {
  bucket = aws_s3_bucket.journal.id

  rule {
    id     = local.rule.ID
    status = local.rule.Status

    filter {
      prefix = local.rule.Filter.Prefix
    }

    expiration {
      days = local.rule.Expiration.Days
    }

    noncurrent_version_expiration { # only if you enable versioning, which the journal does not need
      noncurrent_days = local.rule.NoncurrentVersionExpiration.NoncurrentDays
    }
  }
}

data "aws_iam_openid_connect_provider" "github" {
  url = "https://token.actions.githubusercontent.com"
}

data "aws_iam_policy_document" "github" {
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]

    principals {
      type        = "Federated"
      identifiers = [data.aws_iam_openid_connect_provider.github.arn]
    }

    condition {
      test     = "StringEquals"
      variable = "token.actions.githubusercontent.com:aud"
      values   = ["sts.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "token.actions.githubusercontent.com:sub"
      values   = [for name in ["agent-plan", "agent-apply"] : "repo:${var.repository}:environment:${name}"]
    }
  }
}

resource "aws_iam_role" "journal" {
  name               = "${var.bucket}-agent-journal"
  assume_role_policy = data.aws_iam_policy_document.github.json
}

resource "aws_iam_role_policy" "journal" {
  name   = "agent-journal"
  role   = aws_iam_role.journal.id
  policy = local.policy
}

output "variables" {
  description = "Variables of the repository."
  value = {
    AGENT_JOURNAL_URL = "s3://${var.bucket}/agent-journal?region=${aws_s3_bucket.journal.region}"
    AWS_REGION        = aws_s3_bucket.journal.region
    AWS_ROLE_ARN      = aws_iam_role.journal.arn
  }
}
