terraform query -json | jq -r 'select(.type == "list_resource_found").list_resource_found.resource_object |
  "\(.name) \(.id) \(.status) \(.pr_link // "")"'
