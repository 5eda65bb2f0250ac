package main

import (
	"testing"

	"github.com/vmware/govmomi/vapi/rest"
)

const limited = `
datastores: [fast, slow]
storage_policies: {vSAN Default Storage Policy: [fast]}
host_defaults: {hardware: t4_cx5}
clusters: [{name: gpu, hosts: [{name: esx01.lab}]}]
vms: [{name: one}]
`

// A machine has the policies that a client sets, and complies if its datastores fit them.
func TestAMachineHasTheStoragePoliciesThatItGets(t *testing.T) {
	r := launch(t, limited)
	c := rest.NewClient(r.c.Client)
	r.must(c.Login(r.ctx, r.url().User))
	token, base := c.SessionID(), "/api/vcenter/storage/policies"
	_, _, listed := r.call(token, "GET", base, "")
	ids := map[string]string{}
	for _, one := range listed {
		p := one.(map[string]any)
		ids[p["name"].(string)] = p["policy"].(string)
	}
	policy, vm := ids["vSAN Default Storage Policy"], r.vm("one").Reference().Value
	if policy == "" || len(ids) < 2 {
		t.Fatalf("policies: %v", ids)
	}
	path := "/api/vcenter/vm/" + vm + "/storage/policy"
	for body, want := range map[string]int{
		`{"vm_home":{"type":"USE_SPECIFIED_POLICY","policy":"` + policy + `"}}`:     204,
		`{"vm_home":{"type":"USE_SPECIFIED_POLICY","policy":"none"}}`:               404,
		`{"disks":{"1":{"type":"USE_SPECIFIED_POLICY","policy":"` + policy + `"}}}`: 404,
	} {
		if code, _, _ := r.call(token, "PATCH", path, body); code != want {
			t.Errorf("%s: %d", body, code)
		}
	}
	_, holders, _ := r.call(token, "GET", base+"/"+policy+"/vm", "")
	if one, ok := holders[vm].(map[string]any); !ok || one["vm_home"] != true {
		t.Errorf("machines of the policy: %v", holders)
	}
	_, state, _ := r.call(token, "GET", base+"/compliance/vm?status=COMPLIANT&vms="+vm, "")
	if one, ok := state[vm].(map[string]any); !ok || one["vm_home"] == nil {
		t.Errorf("compliance: %v", state)
	}
	code, fitting, _ := r.call(token, "POST", base+"/"+policy+"?action=check-compatibility", `{"datastores":[]}`)
	if found, ok := fitting["compatible_datastores"].([]any); code != 200 || !ok || len(found) != 0 {
		t.Errorf("compatible: %d %v", code, fitting)
	}
	if code, _, _ := r.call("", "GET", base, ""); code != 401 {
		t.Errorf("without a session: %d", code)
	}
}
