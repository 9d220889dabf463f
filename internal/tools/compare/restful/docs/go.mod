module github.com/magodo/terraform-plugin-framework-docs

go 1.26.0
