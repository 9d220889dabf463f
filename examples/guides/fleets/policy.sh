terraform plan -input=false -var-file=projects.tfvars -out=fleet.tfplan &&
  terraform show -json fleet.tfplan >fleet.json &&
  opa eval --fail-defined --format=pretty --input=fleet.json --data=policy.rego 'data.agent.deny[_]' &&
  terraform apply -input=false fleet.tfplan
