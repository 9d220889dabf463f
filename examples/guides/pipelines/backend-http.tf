terraform {
  backend "http" {} # TF_HTTP_ADDRESS and the like say where
}
