// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// dataFolder is where the CLI keeps what belongs to the root module.
func dataFolder() string {
	if folder := os.Getenv("TF_DATA_DIR"); folder != "" {
		return folder
	}
	return ".terraform"
}

// JournalFolder is where the crash journal of a root module is kept.
func JournalFolder() string { return filepath.Join(dataFolder(), typeName) }

// journalScope tells states apart: two of them never share a job. The CLI does
// not say which it uses, so its traces are read: what cannot be read counts as empty.
func journalScope(baseURL string) string {
	chosen, _ := os.ReadFile(filepath.Join(dataFolder(), "environment"))
	workspace := cmp.Or(os.Getenv("TF_WORKSPACE"), string(chosen), "default")
	var initialised struct {
		Backend json.RawMessage `json:"backend"`
	}
	if text, err := os.ReadFile(filepath.Join(dataFolder(), "terraform.tfstate")); err == nil {
		_ = json.Unmarshal(text, &initialised)
	}
	return fmt.Sprintf("%s\n%s\n%x", baseURL, workspace, sha256.Sum256(initialised.Backend))
}
