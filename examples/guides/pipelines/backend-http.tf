terraform {
  backend "http" {} # configured by TF_HTTP_… variables
}
