package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vapi/rest"
)

const manager, managerVersion = "NVD-AIE-800", "550.90.05-1OEM.800.1.0.20613240"

// vlcm is a client of the operations on the image of the cluster.
type vlcm struct {
	*running
	c    *rest.Client
	path string
}

func (r *running) vlcm() vlcm {
	r.t.Helper()
	r.control("PATCH", "/clusters/gpu", map[string]any{"image_managed": true,
		"image_components": map[string]string{manager: managerVersion}}, nil)
	return vlcm{r, r.rest(), "/api/esx/settings/clusters/" + r.cluster().Value + "/software"}
}

// do returns the answer, and the kind of the error with which the server refused.
func (v vlcm) do(method, path string, body any) (answer any, kind string) {
	v.t.Helper()
	text, err := json.Marshal(body)
	v.must(err)
	req, err := http.NewRequest(method, v.url().Scheme+"://"+v.url().Host+path, bytes.NewReader(text))
	v.must(err)
	req.Header.Set("vmware-api-session-id", v.c.SessionID())
	res, err := v.c.Client.Client.Do(req)
	v.must(err)
	defer func() { v.must(res.Body.Close()) }()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		kind = answer.(map[string]any)["error_type"].(string)
	}
	return answer, kind
}

// end starts an action, and returns its task when it has ended.
func (v vlcm) end(action string, body any) map[string]any {
	v.t.Helper()
	id, kind := v.do("POST", v.path+"?action="+action+"&vmw-task=true", body)
	if kind != "" {
		v.t.Fatalf("%s: %s", action, kind)
	}
	return v.ended(id.(string))
}

func (v vlcm) ended(id string) (task map[string]any) {
	v.awaitTrue("the task ends", func() bool {
		answer, _ := v.do("GET", "/api/cis/tasks/"+id, nil)
		task = answer.(map[string]any)
		return task["status"] != "RUNNING"
	})
	return task
}

func (v vlcm) hostID(name string) string { return v.host(name).Reference().Value }

func TestApplyBringsOneHostToTheImage(t *testing.T) {
	v := launch(t, "").vlcm()
	one, two := v.hostID("esx01.lab"), v.hostID("esx02.lab")
	v.control("PATCH", "/hosts/esx01.lab", map[string]any{"maintenance": true}, nil)
	id, _ := v.do("POST", v.path+"?action=apply&vmw-task=true",
		map[string]any{"hosts": []string{one}, "accept_eula": true})
	if _, kind := v.do("POST", v.path+"?action=apply&vmw-task=true",
		map[string]any{"hosts": []string{two}, "accept_eula": true}); kind != "NOT_ALLOWED_IN_CURRENT_STATE" {
		t.Errorf("a second apply: %q", kind)
	}
	filter := map[string]any{"services": []string{"com.vmware.esx.settings.clusters.software"},
		"status": []string{"RUNNING"}}
	listed, _ := v.do("POST", "/api/cis/tasks?action=list", map[string]any{"filter_spec": filter})
	if info := listed.(map[string]any)[id.(string)].(map[string]any); info["user"] != testUser ||
		info["operation"] != "apply$task" || info["result"] != nil {
		t.Errorf("listed: %v", info)
	}
	result := v.ended(id.(string))["result"].(map[string]any)
	if got := result["successful_hosts"].([]any); len(got) != 1 || got[0] != one {
		t.Errorf("successful: %v", got)
	}
	compliance := v.end("scan", nil)["result"].(map[string]any)
	if good := compliance["compliant_hosts"].([]any); len(good) != 1 || good[0] != one {
		t.Errorf("compliant: %v", good)
	}
	var report map[string]any
	v.control("GET", "/hosts/esx01.lab", nil, &report)
	if report["maintenance"] != true {
		t.Error("the host left maintenance mode")
	}
}

func TestApplyIsRefused(t *testing.T) {
	v := launch(t, "").vlcm()
	one := v.hostID("esx01.lab")
	if _, kind := v.do("POST", v.path+"?action=apply&vmw-task=true",
		map[string]any{"hosts": []string{"host-0"}}); kind != "INVALID_ARGUMENT" {
		t.Errorf("a strange host: %q", kind)
	}
	task := v.end("apply", map[string]any{"hosts": []string{one}})
	if text, _ := json.Marshal(task["error"]); task["status"] != "FAILED" || !strings.Contains(string(text), "EULA") {
		t.Errorf("without the EULA: %v", task)
	}
	v.control("PATCH", "/clusters/gpu", map[string]any{"image_components": map[string]string{}}, nil)
	if _, kind := v.do("POST", v.path+"?action=apply&vmw-task=true",
		map[string]any{"hosts": []string{one}}); kind != "ALREADY_IN_DESIRED_STATE" {
		t.Errorf("nothing to do: %q", kind)
	}
	if _, kind := v.do("POST", "/api/cis/tasks?action=list", nil); kind != "INVALID_ARGUMENT" {
		t.Errorf("tasks of no service: %q", kind)
	}
	if _, kind := v.do("GET", "/api/cis/tasks", nil); kind != "NOT_FOUND" {
		t.Errorf("a GET of all tasks: %q", kind)
	}
}

func TestCheckPolicyStageAndDepots(t *testing.T) {
	v := launch(t, "").vlcm()
	one := v.hostID("esx01.lab")
	check := func() any {
		return v.end("check", map[string]any{"hosts": []string{one}})["result"].(map[string]any)["status"]
	}
	if got := check(); got != "OK" {
		t.Errorf("check: %v", got)
	}
	v.control("PATCH", "/clusters/gpu", map[string]any{"check_issues": []string{"a disk is full"},
		"image_policy": map[string]any{"enable_quick_boot": true}}, nil)
	if got := check(); got != "ERROR" {
		t.Errorf("check with an issue: %v", got)
	}
	policy, _ := v.do("GET", strings.TrimSuffix(v.path, "/software")+"/policies/apply/effective", nil)
	if policy.(map[string]any)["enable_quick_boot"] != true {
		t.Errorf("policy: %v", policy)
	}
	staged := v.end("stage", map[string]any{"hosts": []string{one}})["result"].(map[string]any)
	if len(staged["successful_hosts"].([]any)) != 1 {
		t.Errorf("staged: %v", staged)
	}
	create := func(from string) map[string]any {
		id, _ := v.do("POST", "/api/esx/settings/depots/offline?vmw-task=true",
			map[string]any{"source_type": "PULL", "location": from})
		return v.ended(id.(string))
	}
	if task := create("http://depot.lab/none.zip"); task["status"] != "FAILED" {
		t.Errorf("a depot that is not there: %v", task)
	}
	create("http://depot.lab/NVD-AIE-800_550.90.05.zip")
	if list, _ := v.do("GET", "/api/esx/settings/depots/offline", nil); len(list.(map[string]any)) != 1 {
		t.Errorf("depots: %v", list)
	}
}
