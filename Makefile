# Copyright (c) the terraform-provider-agent authors
# SPDX-License-Identifier: MPL-2.0

# Needs Go and make only; every other tool comes as a Go module.
# TF_CLI=<path or name> chooses the Terraform-compatible CLI.

.PHONY: help build install demo simulator test test-stores test-matrix chaos bench fuzz contract lint docs picture fmt clis release-check clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile | expand -t 16

# As the provider for a CLI, or all that it is made of would be compiled twice. Not in the commands: Windows may have no shell.
export CGO_ENABLED = 0

build: ## build the provider into bin/, as a release does
	go run ./internal/tools/tfcli/cmd/tfcli build dev bin/terraform-provider-agent$$(go env GOEXE)

install: ## build the provider for your own CLI, and tell how to use it there
	go run ./internal/tools/tfcli/cmd/tfcli install

demo: ## show the provider at work: simulator, CLI and example, end to end
	go run ./internal/tools/demo

simulator: ## run the simulated service in the foreground
	go run ./internal/simulator/cmd/simulator

test: ## run every test, acceptance tests included, and explore how runs can be cut short; RACE=1 as CI does, EXPLORE=more too
	internal/tools/test.sh

test-stores: ## run the tests that need a store's server: MinIO and versitygw, built from source the first time, and Azurite, if npm is there
	internal/tools/stores.sh internal/tools/test.sh -count=1 -run 'S3|Stores'

test-matrix: ## run the tests that use a CLI on every CLI, on PATH and built; MATRIX=-others leaves out the one of make test
	internal/tools/testmatrix.sh $(MATRIX)

chaos: ## a sample of two cuts of runs in a row, mutants, 100,000 turns of random lives, and CLI=20 times each signal to a real CLI; CHAOS_SEED=N repeats cuts and lives
	EXPLORE=all go -C internal/test/explore test -timeout 4h
	EXPLORE=all go test -count=1 -run TestStress ./internal/journal
	LIVES=21000 go -C internal/test/lives test -run TestLives -timeout 2h
	go test -v -count=$${CLI:-20} -run TestRounds -timeout 7h ./internal/test/chaos

bench: ## measure the provider with a real CLI beside the CLI's own floor (about an hour); go run ./internal/tools/bench -h: a part of it
	internal/tools/stores.sh go run ./internal/tools/bench

contract: ## check a live service against what the provider assumes: starts two jobs and sends each a message, and asks first
	@go run ./internal/tools/contract

fuzz: ## fuzz every target, each for FUZZTIME=60s
	internal/tools/fuzz.sh

lint: ## run every static check
	internal/tools/lint.sh

docs: ## write docs/ from the schema, templates/ and examples/
	internal/tools/docs.sh

picture: ## record the demo and draw the pictures of README and guides (needs asciinema, npm and graphviz)
	internal/tools/picture.sh

fmt: ## format Go code and examples
	go tool -modfile=internal/tools/lint/go.mod golangci-lint fmt ./...
	"$$(go run ./internal/tools/tfcli/cmd/tfcli find)" fmt -recursive examples

clis: ## build Terraform and OpenTofu from source into the user's cache folder, for tests only
	go run ./internal/tools/source/cmd/build terraform opentofu

release-check: ## make a release of the last commit, signed with a throw-away key, and install it for real
	internal/tools/release.sh check

clean: ## remove what was built here
	rm -rf bin dist
