// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package s3

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentjobs/terraform-provider-agent/internal/journal/store/bucket"
	"github.com/agentjobs/terraform-provider-agent/internal/test/storetest"
)

// fakeAWS is as much of S3, STS, SSO and of the metadata services as it takes to see who signs.
type fakeAWS struct {
	*httptest.Server
	sync.Mutex
	seen map[string]bool // who signed requests to S3, and what was asked of the others
}

var (
	credential  = regexp.MustCompile(`Credential=([^/]+)/[0-9]+/([^/]+)/(sts)?`)
	randomNames = regexp.MustCompile(`^(aws-go-sdk-)?[0-9]{15,}$`)
)

func newAWS(t *testing.T) *fakeAWS {
	a := &fakeAWS{seen: map[string]bool{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const secret = `"SecretAccessKey": "s", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"`
	signer := "nobody"
	if found := credential.FindStringSubmatch(r.Header.Get("Authorization")); found != nil {
		signer = found[1]
		if found[3] != "" {
			signer += " in " + found[2]
		}
	}
	if err := r.ParseForm(); err != nil {
		return
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/latest"); {
	case r.Form.Has("Action"):
		a.lend(w, r, signer)
	case path == "/federation/credentials":
		a.saw("SSO: %s as %s", r.Header.Get("X-Amz-Sso_bearer_token"), r.Form.Get("role_name"))
		fmt.Fprint(w, `{"roleCredentials": {"accessKeyId": "of-sso", "secretAccessKey": "s", "sessionToken": "t", "expiration": 32472144000000}}`)
	case path == "/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		fmt.Fprint(w, "token")
	case path == "/meta-data/iam/security-credentials/":
		fmt.Fprint(w, "machine")
	case strings.HasPrefix(path, "/meta-data/"):
		fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": "of-machine", %s}`, secret)
	case path == "/container":
		fmt.Fprintf(w, `{"AccessKeyId": "of-container", %s}`, secret)
	default:
		a.saw("S3: %s", strings.TrimSuffix(signer+" at "+r.Host, " at "+a.Listener.Addr().String()))
		w.Header().Set("ETag", `"1"`)
		if r.Method == http.MethodHead || r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		} else if r.Method == http.MethodGet {
			fmt.Fprint(w, "<ListBucketResult><Name>states</Name></ListBucketResult>")
		}
	}
}

func (a *fakeAWS) saw(format string, what ...any) {
	a.Lock()
	defer a.Unlock()
	a.seen[fmt.Sprintf(format, what...)] = true
}

// take returns what was seen since the last call.
func (a *fakeAWS) take() []string {
	a.Lock()
	defer a.Unlock()
	seen := a.seen
	a.seen = map[string]bool{}
	return slices.Sorted(maps.Keys(seen))
}

// lend is STS.
func (a *fakeAWS) lend(w http.ResponseWriter, r *http.Request, signer string) {
	action, role := r.PostForm.Get("Action"), r.PostForm.Get("RoleArn")
	if action != "GetCallerIdentity" { // which the CLI calls for other reasons, too
		asked := []string{action, "by " + signer}
		for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
			value := r.PostForm.Get(name)
			if randomNames.MatchString(value) {
				value = "random"
			}
			if name != "Action" && name != "Version" {
				asked = append(asked, name+"="+value)
			}
		}
		a.saw("STS: %s", strings.Join(asked, " "))
	}
	fmt.Fprint(w, lent(action, role[strings.LastIndex(role, "/")+1:], time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)))
}

// A CLI's own backend and the journal beside its state sign alike.
func TestS3_signers(t *testing.T) {
	if text := os.Getenv(inProcess); text != "" {
		var settings map[string]any
		if err := json.Unmarshal([]byte(text), &settings); err != nil {
			t.Fatal(err)
		}
		before := os.Environ()
		c, prefix, err := storetest.Beside(Kind(), settings)
		if err == nil {
			_, err = bucket.New(c, prefix, "scope", nil).Put(t.Context(), newText, []byte("{}"))
		}
		if diff := cmp.Diff(before, os.Environ()); diff != "" {
			fmt.Fprint(os.Stderr, diff)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	cli := os.Getenv("TF_CLI")
	if cli == "" {
		t.Skip("TF_CLI names no OpenTofu: make test-matrix sets it")
	}
	if version, err := exec.Command(cli, "version").Output(); err != nil {
		t.Fatal(err)
	} else if !strings.Contains(string(version), "OpenTofu") {
		t.Skip("the CLI is not OpenTofu, and a Terraform that was built for tests has no s3 backend: make test-matrix has both")
	}
	at := newAWS(t)
	home := t.TempDir()
	session := fmt.Sprintf("%x.json", sha1.Sum([]byte("corp")))
	for name, text := range map[string]string{
		".aws/credentials": "[default]\naws_access_key_id = of-default\naws_secret_access_key = s\n" +
			"[team]\naws_access_key_id = of-team\naws_secret_access_key = s\n",
		".aws/config": "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/first\nsource_profile = team\nrole_session_name = se\nexternal_id = x1\n" +
			"[profile chain]\nrole_arn = arn:aws:iam::123456789012:role/second\nsource_profile = role\nrole_session_name = se\n" +
			"[profile environment]\nrole_arn = arn:aws:iam::123456789012:role/first\ncredential_source = Environment\n" +
			"[profile process]\ncredential_process = cat " + home + "/process\n" +
			"[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = reader\n" +
			"[sso-session corp]\nsso_region = eu-central-1\nsso_start_url = https://corp.example.com\nsso_registration_scopes = sso:account:access\n",
		".aws/sso/cache/" + session: `{"accessToken": "t", "expiresAt": "2999-01-01T00:00:00Z"}`,
		"token":                     "a token",
		"process":                   `{"Version": 1, "AccessKeyId": "of-process", "SecretAccessKey": "s"}`,
		"shared":                    "[default]\naws_access_key_id = of-shared\naws_secret_access_key = s\n",
		"shared_config":             "[default]\naws_access_key_id = of-shared-config\naws_secret_access_key = s\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type values = map[string]any
	type variables = map[string]string
	const arn, policy = "arn:aws:iam::123456789012:role/", "arn:aws:iam::123456789012:policy/a"
	keys := func(more variables) variables {
		set := variables{"AWS_ACCESS_KEY_ID": "of-env", "AWS_SECRET_ACCESS_KEY": "s"}
		maps.Copy(set, more)
		return set
	}
	web := variables{"AWS_ROLE_ARN": arn + "web", "AWS_WEB_IDENTITY_TOKEN_FILE": filepath.Join(home, "token")}
	for _, test := range []struct {
		name      string
		set       values
		variables variables
		want      string // who signs requests to S3; empty: nobody
	}{
		{"keys of variables", nil, keys(nil), "of-env"},
		{"default profile", nil, nil, "of-default"},
		{"profile", values{"profile": "team"}, nil, "of-team"},
		{"profile, variable", nil, variables{"AWS_PROFILE": "team"}, "of-team"},
		{"profile beside keys of variables", values{"profile": "team"}, keys(nil), "of-team"},
		{"profile, variable, beside keys of variables", nil, keys(variables{"AWS_PROFILE": "team"}), "of-env"},
		{"chain of profiles", values{"profile": "chain"}, nil, "of-second"},
		{"role in a profile, of the environment's keys", values{"profile": "environment"}, keys(nil), "of-first"},
		{"process", values{"profile": "process"}, nil, "of-process"},
		{"SSO", values{"profile": "sso"}, variables{"AWS_ENDPOINT_URL_SSO": at.URL}, "of-sso"},
		{"keys", values{"access_key": "of-setting", "secret_key": "s"}, keys(nil), "of-setting"},
		{"keys with a role", values{"access_key": "of-setting", "secret_key": "s", "assume_role": values{"role_arn": arn + "third", "duration": "20m"}}, nil, "of-third"},
		{"keys with web identity", values{"access_key": "of-setting", "secret_key": "s",
			"assume_role_with_web_identity": values{"role_arn": arn + "web", "web_identity_token": "token"}}, nil, "of-setting"},
		{"role", values{"sts_region": "us-east-2", "assume_role": values{
			"role_arn": arn + "third", "duration": "20m", "external_id": "x1", "policy": "{}", "policy_arns": []any{policy}, "session_name": "se",
			"tags": values{"k": "v"}, "transitive_tag_keys": []any{"k"},
		}}, nil, "of-third"},
		{"role after a profile's", values{"profile": "role", "assume_role": values{"role_arn": arn + "third"}}, nil, "of-third"},
		{"older role", values{
			"role_arn": arn + "third", "session_name": "se", "external_id": "x1", "assume_role_duration_seconds": 1200, "assume_role_policy": "{}",
			"assume_role_policy_arns": []any{policy}, "assume_role_tags": values{"k": "v"}, "assume_role_transitive_tag_keys": []any{"k"},
		}, nil, "of-third"},
		{"web identity of variables", nil, web, "of-web"},
		{"web identity beside keys of variables", nil, keys(web), "of-env"},
		{"web identity in the settings", values{"assume_role_with_web_identity": values{
			"role_arn": arn + "web", "web_identity_token_file": "~/token", "session_name": "w", "duration": "20m", "policy": "{}", "policy_arns": []any{policy},
		}}, keys(nil), "of-web"},
		{"web identity, then a role", values{"assume_role": values{"role_arn": arn + "third"},
			"assume_role_with_web_identity": values{"role_arn": arn + "web", "web_identity_token": "token"}}, nil, "of-third"},
		{"web identity in the settings, by variables", values{"assume_role_with_web_identity": values{"role_arn": nil, "policy": "{}"}},
			variables{"AWS_ROLE_ARN": arn + "web", "AWS_WEB_IDENTITY_TOKEN": "token", "AWS_ROLE_SESSION_NAME": "w"}, "of-web"},
		{"a variable that the SDK does not know", nil, variables{"AWS_WEB_IDENTITY_TOKEN": "token", "AWS_ROLE_ARN": arn + "web"}, "of-default"},
		{"STS by the older setting", values{"endpoints": values{"s3": at.URL}, "sts_endpoint": at.URL, "profile": "role"}, nil, "of-first"},
		{"STS by a variable", values{"endpoints": nil, "profile": "role"}, variables{"AWS_ENDPOINT_URL_STS": at.URL, "AWS_ENDPOINT_URL_S3": at.URL}, "of-first"},
		{"STS by the older variable", values{"endpoints": nil, "profile": "role"}, variables{"AWS_STS_ENDPOINT": at.URL, "AWS_S3_ENDPOINT": at.URL}, "of-first"},
		{"home folder, setting", values{"shared_credentials_files": []any{"~/shared"}}, nil, "of-shared"},
		{"home folder, older setting", values{"shared_credentials_file": "~/shared"}, nil, "of-shared"},
		{"home folder, variable", nil, variables{"AWS_SHARED_CREDENTIALS_FILE": "~/shared"}, "of-shared"},
		{"home folder, the backend's variable", values{"shared_credentials_files": []any{"/none"}}, variables{"AWS_SHARED_CONFIG_FILE": "$HOME/shared_config"}, "of-shared-config"},
		{"home folder, the SDK's variable", values{"shared_credentials_files": []any{"/none"}, "skip_metadata_api_check": true},
			variables{"AWS_CONFIG_FILE": "~/shared_config"}, ""},
		{"older setting and variable", values{"shared_credentials_file": "~/shared"}, variables{"AWS_SHARED_CREDENTIALS_FILE": home + "/.aws/credentials"}, "of-default"},
		{"account", values{"allowed_account_ids": []any{"123456789012"}, "skip_credentials_validation": nil}, keys(nil), "of-env"},
		{"machine", values{"shared_credentials_files": []any{"/none"}, "ec2_metadata_service_endpoint": at.URL}, nil, "of-machine"},
		{"machine, variable", values{"shared_credentials_files": []any{"/none"}}, variables{"AWS_EC2_METADATA_SERVICE_ENDPOINT": at.URL}, "of-machine"},
		{"machine, older variable", values{"shared_credentials_files": []any{"/none"}}, variables{"AWS_METADATA_URL": at.URL}, "of-machine"},
		{"machine, switched on", values{"shared_credentials_files": []any{"/none"}, "skip_metadata_api_check": false, "ec2_metadata_service_endpoint": at.URL},
			variables{"AWS_EC2_METADATA_DISABLED": "true"}, "of-machine"},
		{"machine, not asked", values{"shared_credentials_files": []any{"/none"}, "skip_metadata_api_check": true, "ec2_metadata_service_endpoint": at.URL}, nil, ""},
		{"container", values{"shared_credentials_files": []any{"/none"}}, variables{"AWS_CONTAINER_CREDENTIALS_FULL_URI": at.URL + "/container"}, "of-container"},
		{"proxy", values{"endpoints": values{"s3": "http://s3.invalid"}, "http_proxy": at.URL, "https_proxy": at.URL}, keys(nil), "of-env at s3.invalid"},
		{"nobody", values{"shared_credentials_files": []any{"/none"}, "skip_metadata_api_check": true}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings := values{
				"bucket": "states", "key": "app/state", "region": "eu-central-1", "use_path_style": true, "skip_credentials_validation": true,
				"skip_requesting_account_id": true, "endpoints": values{"s3": at.URL, "sts": at.URL},
			}
			maps.Copy(settings, test.set)
			maps.DeleteFunc(settings, func(_ string, value any) bool { return value == nil })
			set := variables{"HOME": home, "PATH": os.Getenv("PATH"), "CHECKPOINT_DISABLE": "1"}
			maps.Copy(set, test.variables)
			ofCLI, settings, err := initialize(t, cli, at, settings, set)
			if (err == nil) != (test.want != "") {
				t.Fatalf("the CLI: %v", err)
			}
			err = besideInProcess(t, settings, set)
			ofJournal := at.take()
			if (err == nil) != (test.want != "") {
				t.Errorf("the journal: %v", err)
			}
			if diff := cmp.Diff(ofCLI, ofJournal); diff != "" {
				t.Errorf("the CLI's backend is -, the journal is +:\n%s", diff)
			}
			var want []string
			if test.want != "" {
				want = []string{"S3: " + test.want}
			}
			ofJournal = slices.DeleteFunc(ofJournal, func(seen string) bool { return !strings.HasPrefix(seen, "S3: ") })
			if !slices.Equal(ofJournal, want) {
				t.Errorf("got %v, want %v", ofJournal, want)
			}
		})
	}
}

// initialize runs init in a folder, which reads the state. It returns what AWS saw, and the settings as the CLI has written them.
func initialize(t *testing.T, cli string, at *fakeAWS, settings map[string]any, variables map[string]string) ([]string, map[string]any, error) {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{"terraform": map[string]any{"backend": map[string]any{"s3": settings}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), cli, "init", "-input=false", "-no-color")
	command.Dir = dir
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	seen := at.take()
	if text, readErr := os.ReadFile(filepath.Join(dir, ".terraform", "terraform.tfstate")); readErr == nil {
		var state struct {
			Backend struct{ Config map[string]any }
		}
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
		settings = state.Backend.Config
	}
	return seen, settings, err
}

// inProcess is a variable that holds settings.
const inProcess = "AGENT_TEST_S3_SETTINGS"

// besideInProcess writes beside a state in a process with these variables only: the SDK reads HOME once.
func besideInProcess(t *testing.T, settings map[string]any, variables map[string]string) error {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestS3_signers$")
	command.Env = []string{inProcess + "=" + string(text), "GORACE=atexit_sleep_ms=10"} // else each waits for a second
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if stderr.String() != "" {
		t.Errorf("stderr, or changed variables: %s", &stderr)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}
