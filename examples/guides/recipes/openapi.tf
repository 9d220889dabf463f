resource "agent_job" "reference" {
  name     = "reference"
  prompt   = "Bring the API reference up to date with openapi.json"
  triggers = { spec = filesha256("${path.module}/openapi.json") }
}
