package main

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

const workersOfRules = `
clusters: [{name: gpu, hosts: [{name: "esx%02d.lab", count: 2}]}, {name: other, hosts: [{name: alone.lab}]}]
vms:
  - {name: "w%02d", count: 3, host: esx01.lab}
  - {name: stranger, host: alone.lab}
`

func (r *running) clusterConfig() *types.ClusterConfigInfoEx {
	r.t.Helper()
	var c mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, r.cluster(), []string{"configurationEx"}, &c))
	return c.ConfigurationEx.(*types.ClusterConfigInfoEx)
}

func (r *running) reconfigureCluster(spec types.ClusterConfigSpecEx) error {
	r.t.Helper()
	task, err := object.NewClusterComputeResource(r.c.Client, r.cluster()).Reconfigure(r.ctx, &spec, true)
	r.must(err)
	return task.Wait(r.ctx)
}

func (r *running) refs(names ...string) []types.ManagedObjectReference {
	var out []types.ManagedObjectReference
	for _, name := range names {
		out = append(out, r.vm(name).Reference())
	}
	return out
}

func adds(info types.BaseClusterRuleInfo) types.ClusterRuleSpec {
	return types.ClusterRuleSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info: info}
}

func apart(name string, vms []types.ManagedObjectReference) *types.ClusterAntiAffinityRuleSpec {
	return &types.ClusterAntiAffinityRuleSpec{
		ClusterRuleInfo: types.ClusterRuleInfo{Name: name, Enabled: types.NewBool(true)}, Vm: vms}
}

// everything returns a specification with a rule, groups, a rule for groups and both overrides.
func (r *running) everything() types.ClusterConfigSpecEx {
	add := types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}
	vm := r.refs("w01")[0]
	return types.ClusterConfigSpecEx{
		RulesSpec: []types.ClusterRuleSpec{
			adds(apart("apart", r.refs("w01", "w02", "w03"))),
			adds(&types.ClusterVmHostRuleInfo{ClusterRuleInfo: types.ClusterRuleInfo{Name: "on"}, VmGroupName: "vms",
				AffineHostGroupName: "hosts"}),
		},
		GroupSpec: []types.ClusterGroupSpec{
			{ArrayUpdateSpec: add, Info: &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "vms"},
				Vm: r.refs("w01", "w02")}},
			{ArrayUpdateSpec: add,
				Info: &types.ClusterHostGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: "hosts"},
					Host: []types.ManagedObjectReference{r.host("esx01.lab").Reference()}}},
		},
		DrsVmConfigSpec: []types.ClusterDrsVmConfigSpec{
			{ArrayUpdateSpec: add, Info: &types.ClusterDrsVmConfigInfo{
				Key: vm, Enabled: types.NewBool(true), Behavior: types.DrsBehaviorManual}}},
		DasVmConfigSpec: []types.ClusterDasVmConfigSpec{
			{ArrayUpdateSpec: add, Info: &types.ClusterDasVmConfigInfo{
				Key: vm, DasSettings: &types.ClusterDasVmSettings{RestartPriority: "high"}}}},
	}
}

func TestRulesOfACluster(t *testing.T) {
	r := launch(t, workersOfRules)
	r.must(r.reconfigureCluster(r.everything()))
	config := r.clusterConfig()
	if len(config.Rule) != 2 || len(config.Group) != 2 || len(config.DrsVmConfig) != 1 ||
		len(config.DasVmConfig) != 1 {
		t.Fatalf("kept: %+v", config)
	}
	edit := types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit}
	info := &types.ClusterDasVmConfigInfo{Key: config.DasVmConfig[0].Key,
		DasSettings: &types.ClusterDasVmSettings{RestartPriority: "low", IsolationResponse: "shutdown"}}
	r.must(
		r.reconfigureCluster(types.ClusterConfigSpecEx{
			DasVmConfigSpec: []types.ClusterDasVmConfigSpec{{ArrayUpdateSpec: edit, Info: info}}}))
	settings := r.clusterConfig().DasVmConfig[0].DasSettings
	if settings.RestartPriority != "low" || settings.IsolationResponse != "shutdown" {
		t.Errorf("edited: %+v", settings)
	}
}

func TestADeletedMachineLeavesRulesGroupsAndOverrides(t *testing.T) {
	r := launch(t, workersOfRules)
	r.must(r.reconfigureCluster(r.everything()))
	for _, name := range []string{"w01", "w02"} {
		vm := r.vm(name)
		if name == "w01" {
			task, err := vm.Destroy(r.ctx)
			r.must(err)
			r.must(task.Wait(r.ctx))
			continue
		}
		r.must(vm.Unregister(r.ctx))
	}
	config := r.clusterConfig()
	for _, rule := range config.Rule {
		if kept, ok := rule.(*types.ClusterAntiAffinityRuleSpec); ok && len(kept.Vm) != 1 {
			t.Errorf("the rule keeps %v", kept.Vm)
		}
	}
	if group := config.Group[0].(*types.ClusterVmGroup); len(group.Vm) != 0 {
		t.Errorf("the group keeps %v", group.Vm)
	}
	if len(config.DrsVmConfig)+len(config.DasVmConfig) != 0 {
		t.Errorf("overrides are left: %v %v", config.DrsVmConfig, config.DasVmConfig)
	}
}

func TestRulesThatCannotBeLeaveNothing(t *testing.T) {
	r := launch(t, workersOfRules)
	remove := types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: int32(99)}
	for name, spoil := range map[string]func(*types.ClusterConfigSpecEx){
		"a rule of one": func(s *types.ClusterConfigSpecEx) {
			s.RulesSpec = append(s.RulesSpec, adds(apart("one", r.refs("w01"))))
		},
		"of another cluster": func(s *types.ClusterConfigSpecEx) {
			s.RulesSpec = append(s.RulesSpec, adds(apart("far", r.refs("w01", "stranger"))))
		},
		"an unknown rule": func(s *types.ClusterConfigSpecEx) {
			s.RulesSpec = append(s.RulesSpec, types.ClusterRuleSpec{ArrayUpdateSpec: remove})
		},
		"an unknown group": func(s *types.ClusterConfigSpecEx) { s.GroupSpec = s.GroupSpec[:1] },
		"an override of a missing": func(s *types.ClusterConfigSpecEx) {
			s.DrsVmConfigSpec[0].Info.Key.Value = "vm-gone"
		},
		"an override edited": func(s *types.ClusterConfigSpecEx) {
			s.DasVmConfigSpec[0].Operation = types.ArrayUpdateOperationEdit
		},
	} {
		spec := r.everything()
		spoil(&spec)
		if err := r.reconfigureCluster(spec); err == nil {
			t.Errorf("%s was accepted", name)
		}
		if config := r.clusterConfig(); len(config.Rule)+len(config.Group)+len(config.DrsVmConfig)+len(
			config.DasVmConfig) != 0 {
			t.Errorf("%s left %+v", name, config)
		}
	}
}
