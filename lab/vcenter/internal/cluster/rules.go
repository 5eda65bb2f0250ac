package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// init registers ManagedObject as a name of ManagedObjectReference, because pyVmomi uses it in the key of a removed
// override.
func init() {
	types.Add("ManagedObject", reflect.TypeOf((*vcsim.Ref)(nil)).Elem())
}

// refuseRules refuses a specification with an invalid rule, group or override, before vcsim stores a part of it. The
// caller holds the cluster's lock.
// Ours: the fault is InvalidArgument with the path in the specification (unproven).
func (c *Methods) refuseRules(ctx *simulator.Context, spec *types.ClusterConfigSpecEx) vcsim.Fault {
	config := c.ConfigurationEx.(*types.ClusterConfigInfoEx)
	groups, fault := c.groupsAfter(ctx, config, spec)
	if fault != nil {
		return fault
	}
	for i := range spec.RulesSpec {
		if f := c.refuseRule(ctx, config, &spec.RulesSpec[i], groups, fmt.Sprintf("spec.rulesSpec[%d]", i)); f != nil {
			return f
		}
	}
	return c.refuseOverrides(ctx, config, spec)
}

// refuseOverrides refuses DRS and HA overrides of virtual machines that cannot be added, edited or removed.
func (c *Methods) refuseOverrides(
	ctx *simulator.Context, config *types.ClusterConfigInfoEx, spec *types.ClusterConfigSpecEx,
) vcsim.Fault {
	var drs, das []vcsim.Ref
	for _, o := range config.DrsVmConfig {
		drs = append(drs, o.Key)
	}
	for _, o := range config.DasVmConfig {
		das = append(das, o.Key)
	}
	for i, s := range spec.DrsVmConfigSpec {
		if s.Operation != types.ArrayUpdateOperationRemove && s.Info != nil {
			s.RemoveKey = s.Info.Key
		}
		if c.refuseOverride(ctx, s.ArrayUpdateSpec, s.Info != nil, drs) {
			return invalid("spec.drsVmConfigSpec[%d]", i)
		}
	}
	for i, s := range spec.DasVmConfigSpec {
		if s.Operation != types.ArrayUpdateOperationRemove && s.Info != nil {
			s.RemoveKey = s.Info.Key
		}
		if c.refuseOverride(ctx, s.ArrayUpdateSpec, s.Info != nil && s.Info.DasSettings != nil, das) {
			return invalid("spec.dasVmConfigSpec[%d]", i)
		}
	}
	return nil
}

func invalid(format string, arguments ...any) vcsim.Fault {
	return &types.InvalidArgument{InvalidProperty: fmt.Sprintf(format, arguments...)}
}

// refuseOverride reports whether an override of a virtual machine must be refused; present are the virtual machines
// that have an override.
func (c *Methods) refuseOverride(
	ctx *simulator.Context, s types.ArrayUpdateSpec, filled bool, there []vcsim.Ref,
) bool {
	key, ok := s.RemoveKey.(vcsim.Ref)
	known := ok && slices.Contains(there, key)
	switch s.Operation {
	case types.ArrayUpdateOperationAdd:
		return !filled || known || !c.has(ctx, key)
	case types.ArrayUpdateOperationEdit:
		return !filled || !known
	}
	return !known
}

// groupsAfter returns the set of group names after the specification is applied; it refuses groups with members that
// the cluster does not have.
func (c *Methods) groupsAfter(
	ctx *simulator.Context, config *types.ClusterConfigInfoEx, spec *types.ClusterConfigSpecEx,
) (map[string]bool, vcsim.Fault) {
	groups := map[string]bool{}
	for _, g := range config.Group {
		groups[g.GetClusterGroupInfo().Name] = true
	}
	for i, s := range spec.GroupSpec {
		at := fmt.Sprintf("spec.groupSpec[%d]", i)
		if s.Operation == types.ArrayUpdateOperationRemove {
			name, ok := s.RemoveKey.(string)
			if !ok || !groups[name] {
				return nil, invalid("%s.removeKey", at)
			}
			delete(groups, name)
			continue
		}
		edited := s.Operation == types.ArrayUpdateOperationEdit
		if s.Info == nil || groups[s.Info.GetClusterGroupInfo().Name] != edited {
			return nil, invalid("%s.info.name", at)
		}
		if !c.hasMembers(ctx, s.Info) {
			return nil, invalid("%s.info", at)
		}
		groups[s.Info.GetClusterGroupInfo().Name] = true
	}
	return groups, nil
}

func (c *Methods) hasMembers(ctx *simulator.Context, group types.BaseClusterGroupInfo) bool {
	switch g := group.(type) {
	case *types.ClusterVmGroup:
		return c.hasAll(ctx, g.Vm)
	case *types.ClusterHostGroup:
		return !slices.ContainsFunc(g.Host, func(h vcsim.Ref) bool { return !slices.Contains(c.Host, h) })
	}
	return false
}

// refuseRule refuses an unknown rule, and a rule for virtual machines or groups that the cluster does not have.
func (c *Methods) refuseRule(
	ctx *simulator.Context, config *types.ClusterConfigInfoEx, s *types.ClusterRuleSpec, groups map[string]bool,
	at string,
) vcsim.Fault {
	exists := func(match func(*types.ClusterRuleInfo) bool) bool {
		return slices.ContainsFunc(config.Rule, func(r types.BaseClusterRuleInfo) bool {
			return match(r.GetClusterRuleInfo())
		})
	}
	if s.Operation == types.ArrayUpdateOperationRemove {
		key, ok := s.RemoveKey.(int32)
		if !ok || !exists(func(r *types.ClusterRuleInfo) bool { return r.Key == key }) {
			return invalid("%s.removeKey", at)
		}
		return nil
	}
	if s.Info == nil {
		return invalid("%s.info", at)
	}
	info := s.Info.GetClusterRuleInfo()
	edited := func(r *types.ClusterRuleInfo) bool {
		return r.Name == info.Name && (r.Key == info.Key || s.Operation == types.ArrayUpdateOperationAdd)
	}
	if exists(edited) != (s.Operation == types.ArrayUpdateOperationEdit) {
		return invalid("%s.info.name", at)
	}
	return c.refuseSubjects(ctx, s.Info, groups, at)
}

// refuseSubjects refuses a rule whose virtual machines or groups the cluster does not have.
func (c *Methods) refuseSubjects(
	ctx *simulator.Context, info types.BaseClusterRuleInfo, groups map[string]bool, at string,
) vcsim.Fault {
	switch rule := info.(type) {
	case *types.ClusterAffinityRuleSpec:
		return c.refuseMembers(ctx, rule.Vm, at)
	case *types.ClusterAntiAffinityRuleSpec:
		return c.refuseMembers(ctx, rule.Vm, at)
	case *types.ClusterVmHostRuleInfo:
		for _, name := range []string{rule.VmGroupName, rule.AffineHostGroupName, rule.AntiAffineHostGroupName} {
			if name != "" && !groups[name] {
				return invalid("%s.info", at)
			}
		}
	}
	return nil
}

// refuseMembers refuses an affinity or anti-affinity rule of fewer than two virtual machines.
// Ours: the vSphere Client requires two; the answer of the API is unproven. vcsim accepts one.
func (c *Methods) refuseMembers(ctx *simulator.Context, members []vcsim.Ref, at string) vcsim.Fault {
	if len(members) < 2 || !c.hasAll(ctx, members) {
		return invalid("%s.info.vm", at)
	}
	return nil
}

func (c *Methods) hasAll(ctx *simulator.Context, members []vcsim.Ref) bool {
	return !slices.ContainsFunc(members, func(vm vcsim.Ref) bool { return !c.has(ctx, vm) })
}

// has reports whether a virtual machine runs on a host of the cluster.
func (c *Methods) has(ctx *simulator.Context, vm vcsim.Ref) bool {
	m, ok := ctx.Map.Get(vm).(*simulator.VirtualMachine)
	return ok && m.Runtime.Host != nil && slices.Contains(c.Host, *m.Runtime.Host)
}

// mergeOverrides stores the isolation response and the monitoring settings of an edited HA override.
// Ours: vcsim stores only the restart priority; that unset fields keep their values in an edit is an assumption
// (unproven).
func mergeOverrides(
	old []types.ClusterDasVmConfigInfo, specs []types.ClusterDasVmConfigSpec,
) []types.ClusterDasVmConfigInfo {
	out := slices.Clone(old)
	for _, s := range specs {
		if s.Operation != types.ArrayUpdateOperationEdit {
			continue
		}
		for i := range out {
			if out[i].Key != s.Info.Key {
				continue
			}
			settings := *out[i].DasSettings
			settings.IsolationResponse = cmp.Or(s.Info.DasSettings.IsolationResponse, settings.IsolationResponse)
			if s.Info.DasSettings.VmToolsMonitoringSettings != nil {
				settings.VmToolsMonitoringSettings = s.Info.DasSettings.VmToolsMonitoringSettings
			}
			out[i].DasSettings = &settings
		}
	}
	return out
}

// RemoveFromRules removes a deleted virtual machine from the rules, groups and overrides of all clusters. A rule
// remains, even with one member.
// Ours: general knowledge of vCenter, no document found (unproven).
func RemoveFromRules(ctx *simulator.Context, vm vcsim.Ref) {
	for _, o := range ctx.Map.AllReference("ClusterComputeResource") {
		cluster := o.(*simulator.ClusterComputeResource)
		ctx.WithLock(cluster, func() {
			config := *cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
			config.Rule, config.Group = slices.Clone(config.Rule), slices.Clone(config.Group)
			for i := range config.Rule {
				config.Rule[i] = ruleWithout(config.Rule[i], vm)
			}
			for i := range config.Group {
				if group, ok := config.Group[i].(*types.ClusterVmGroup); ok {
					kept := *group
					kept.Vm = vcsim.Without(group.Vm, vm)
					config.Group[i] = &kept
				}
			}
			config.DrsVmConfig = slices.DeleteFunc(slices.Clone(config.DrsVmConfig),
				func(one types.ClusterDrsVmConfigInfo) bool { return one.Key == vm })
			config.DasVmConfig = slices.DeleteFunc(slices.Clone(config.DasVmConfig),
				func(one types.ClusterDasVmConfigInfo) bool { return one.Key == vm })
			ctx.Update(cluster, []types.PropertyChange{vcsim.Change("configurationEx", &config)})
		})
	}
}

// ruleWithout returns a copy of a rule without a virtual machine.
func ruleWithout(rule types.BaseClusterRuleInfo, vm vcsim.Ref) types.BaseClusterRuleInfo {
	switch r := rule.(type) {
	case *types.ClusterAffinityRuleSpec:
		kept := *r
		kept.Vm = vcsim.Without(r.Vm, vm)
		return &kept
	case *types.ClusterAntiAffinityRuleSpec:
		kept := *r
		kept.Vm = vcsim.Without(r.Vm, vm)
		return &kept
	}
	return rule
}
