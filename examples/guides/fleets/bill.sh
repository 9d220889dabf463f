terraform query -json | jq -r 'select(.type == "list_resource_found").list_resource_found.display_name |
  select(contains("started at 2026-08"))'
