package front

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Policy is a storage policy.
type Policy struct {
	ID          string `json:"policy"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Storage is the interface of the simulated data centre for storage policies.
type Storage interface {
	// Disks returns the keys of the disks of all virtual machines.
	Disks() map[string][]string
	// HasFitting reports whether all datastores of a virtual machine fit a policy with a name.
	HasFitting(vm, policy string) bool
	// Fitting returns those of some datastores that fit a policy with a name.
	Fitting(policy string, datastores []string) []string
	// Policies returns the policies of the home and of the disks of a virtual machine.
	Policies(vm string) (string, map[string]string)
	// SetPolicies sets them.
	SetPolicies(vm, home string, disks map[string]string)
}

const policiesPath = "/api/vcenter/storage/policies"

var vmPolicy = regexp.MustCompile(`^/api/vcenter/vm/([^/]+)/storage/policy$`)

func isPolicies(path string) bool {
	return strings.HasPrefix(path, policiesPath) || vmPolicy.MatchString(path)
}

// apiPolicies answers the REST paths of storage policies, whose policies are those of vcsim's SPBM.
// VMware: its description of the REST API, 7.0.3: /api/vcenter/storage/policies and
// /api/vcenter/vm/{vm}/storage/policy.
// Ours: the description of the data centre says which datastores fit a policy; without a word, all do.
func (f *Front) apiPolicies(r *http.Request, body []byte) *recorder {
	f.restTurn.Lock()
	defer f.restTurn.Unlock()
	if _, known := f.sessions.user(r.Header.Get(restSessionHeader)); !known {
		return refused(http.StatusUnauthorized, "UNAUTHENTICATED")
	}
	policies, err := f.Policies()
	if err != nil {
		return refused(http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE")
	}
	if found := vmPolicy.FindStringSubmatch(r.URL.Path); found != nil && r.Method == http.MethodPatch {
		return f.changePolicy(found[1], body, policies)
	}
	switch parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, policiesPath), "/"), "/"); {
	case r.URL.Path == policiesPath && r.Method == http.MethodGet:
		return accepted(policies)
	case r.URL.Path == policiesPath+"/compliance/vm":
		return f.compliance(r.URL.Query()["vms"], policies)
	case len(parts) == 2 && parts[1] == "vm":
		return f.machinesOf(parts[0])
	case len(parts) == 1 && r.URL.Query().Get("action") == "check-compatibility":
		return f.compatible(parts[0], body, policies)
	}
	return refused(http.StatusNotFound, "NOT_FOUND")
}

func (f *Front) changePolicy(vm string, body []byte, policies []Policy) *recorder {
	type choice struct{ Type, Policy string }
	var asked struct {
		Home  *choice           `json:"vm_home"`
		Disks map[string]choice `json:"disks"`
	}
	disks, exists := f.storage.Disks()[vm]
	if json.Unmarshal(body, &asked) != nil || !exists {
		return refused(http.StatusNotFound, "NOT_FOUND")
	}
	home, kept := f.storage.Policies(vm)
	if kept == nil {
		kept = map[string]string{}
	}
	if asked.Home != nil {
		home = asked.Home.Policy
	}
	for key, one := range asked.Disks {
		if !slices.Contains(disks, key) {
			return refused(http.StatusNotFound, "NOT_FOUND")
		}
		kept[key] = one.Policy
	}
	for _, id := range append(values(kept), home) {
		if id != "" && named(policies, id) == "" {
			return refused(http.StatusNotFound, "NOT_FOUND")
		}
	}
	f.storage.SetPolicies(vm, home, kept)
	return &recorder{header: http.Header{}, status: http.StatusNoContent, decided: true}
}

func (f *Front) machinesOf(policy string) *recorder {
	answer := map[string]any{}
	for vm := range f.storage.Disks() {
		home, disks := f.storage.Policies(vm)
		keys := []string{}
		for key, id := range disks {
			if id == policy {
				keys = append(keys, key)
			}
		}
		if home == policy || len(keys) > 0 {
			answer[vm] = map[string]any{"vm_home": home == policy, "disks": keys}
		}
	}
	return accepted(answer)
}

func (f *Front) compliance(vms []string, policies []Policy) *recorder {
	answer := map[string]any{}
	for vm := range f.storage.Disks() {
		home, disks := f.storage.Policies(vm)
		if len(vms) > 0 && !slices.Contains(vms, vm) || home == "" && len(disks) == 0 {
			continue
		}
		status := func(id string) string {
			if f.storage.HasFitting(vm, named(policies, id)) {
				return "COMPLIANT"
			}
			return "NON_COMPLIANT"
		}
		of := map[string]any{}
		for key, id := range disks {
			of[key] = status(id)
		}
		one := map[string]any{"disks": of}
		if home != "" {
			one["vm_home"] = status(home)
		}
		answer[vm] = one
	}
	return accepted(answer)
}

func (f *Front) compatible(policy string, body []byte, policies []Policy) *recorder {
	var asked struct{ Datastores []string }
	name := named(policies, policy)
	if json.Unmarshal(body, &asked) != nil || name == "" {
		return refused(http.StatusNotFound, "NOT_FOUND")
	}
	fitting := []map[string]string{}
	for _, one := range f.storage.Fitting(name, asked.Datastores) {
		fitting = append(fitting, map[string]string{"datastore": one})
	}
	return accepted(map[string]any{"compatible_datastores": fitting})
}

func named(policies []Policy, id string) string {
	for _, one := range policies {
		if one.ID == id {
			return one.Name
		}
	}
	return ""
}

func values(of map[string]string) []string {
	found := []string{}
	for _, one := range of {
		found = append(found, one)
	}
	return found
}

func accepted(value any) *recorder {
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	rec.header.Set("Content-Type", "application/json")
	rec.body.Write(encoded(value))
	return rec
}

func refused(status int, kind string) *recorder {
	rec := accepted(map[string]any{"error_type": kind, "messages": []map[string]any{
		{"id": "lab.storage", "default_message": "The request is refused: " + kind + ".", "args": []string{}}}})
	rec.status = status
	return rec
}
