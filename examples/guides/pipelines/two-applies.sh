terraform init -input=false
terraform plan -input=false -var=wait=false -out=tfplan
terraform apply -input=false tfplan        # sends
terraform apply -input=false -auto-approve # waits
