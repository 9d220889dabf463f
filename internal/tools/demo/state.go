// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// jobState is what the state file says of the job; the zero value when the
// state holds none.
type jobState struct {
	id, status string
	tainted    bool
}

func readState(dir string) (jobState, error) {
	text, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if errors.Is(err, fs.ErrNotExist) {
		return jobState{}, nil
	}
	if err != nil {
		return jobState{}, err
	}
	var file struct {
		Resources []struct {
			Instances []struct {
				Status     string // "tainted", or absent
				Attributes struct{ ID, Status string }
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return jobState{}, fmt.Errorf("reading the state: %w", err)
	}
	var state jobState
	for _, resource := range file.Resources {
		for _, instance := range resource.Instances {
			if state != (jobState{}) {
				return jobState{}, errors.New("the state holds more than one resource")
			}
			state = jobState{instance.Attributes.ID, instance.Attributes.Status, instance.Status == "tainted"}
		}
	}
	return state, nil
}

// filesWith returns the files below dir that hold the text. Links are not
// followed: the plugin is behind one, and big.
func filesWith(dir, text string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	return found, err
}
