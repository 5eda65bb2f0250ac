package cluster

import (
	"cmp"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Methods answers the calls to a cluster that vcsim lacks or answers without checks.
type Methods struct {
	*simulator.ClusterComputeResource
	Sim *vcsim.Sim
}

// AddHostTask returns the fault NotSupported.
// Ours: vcsim panics when a host joins a cluster with hosts newer than ESXi 8.0.2.
func (c *Methods) AddHostTask(*simulator.Context, *types.AddHost_Task) soap.HasFault {
	return &methods.AddHost_TaskBody{
		Fault_: simulator.Fault("The hosts of this lab are those of its description.", &types.NotSupported{})}
}

// ReconfigureComputeResourceTask applies a specification completely or not at all. vcsim stores rules, groups and
// overrides; the DRS and HA settings that vcsim drops are stored here.
// Ours: that vCenter applies no part of a rejected specification is general knowledge (unproven).
func (c *Methods) ReconfigureComputeResourceTask(
	ctx *simulator.Context, req *types.ReconfigureComputeResource_Task,
) soap.HasFault {
	spec, ok := req.Spec.(*types.ClusterConfigSpecEx)
	if !ok {
		return c.ClusterComputeResource.ReconfigureComputeResourceTask(ctx, req)
	}
	if f := refuseCluster(spec); f != nil {
		return &methods.ReconfigureComputeResource_TaskBody{Fault_: vcsim.SoapFault(f)}
	}
	t := c.Sim.Start(ctx, c.ClusterComputeResource, "reconfigureComputeResourceTask", "ComputeResource.reconfigureEx",
		func(j *vcsim.Job) (any, vcsim.Fault) { return c.apply(j, req, spec) })
	return &methods.ReconfigureComputeResource_TaskBody{
		Res: &types.ReconfigureComputeResource_TaskResponse{Returnval: t}}
}

// apply lets vcsim apply a checked specification, and stores the parts that vcsim drops.
func (c *Methods) apply(
	j *vcsim.Job, req *types.ReconfigureComputeResource_Task, spec *types.ClusterConfigSpecEx,
) (any, vcsim.Fault) {
	inner := vcsim.Detached(j.Ctx)
	var task vcsim.Ref
	var refused vcsim.Fault
	inner.WithLock(c.ClusterComputeResource, func() {
		if refused = c.refuseRules(inner, spec); refused == nil {
			task = vcsim.TaskOf(c.ClusterComputeResource.ReconfigureComputeResourceTask(inner, req))
		}
	})
	if refused != nil {
		return nil, refused
	}
	if result, fault := j.Follow(task); fault != nil {
		return result, fault
	}
	Configure(j.Ctx, c.ClusterComputeResource, spec)
	return nil, nil
}

// refuseCluster refuses a DRS migration threshold (vmotionRate) outside 1 to 5.
// VMware: vSphere API reference, ClusterDrsConfigInfo.vmotionRate: valid values are 1 to 5.
func refuseCluster(spec *types.ClusterConfigSpecEx) vcsim.Fault {
	if spec.DrsConfig != nil && spec.DrsConfig.VmotionRate != 0 &&
		(spec.DrsConfig.VmotionRate < 1 || spec.DrsConfig.VmotionRate > 5) {
		return &types.InvalidArgument{InvalidProperty: "spec.drsConfig.vmotionRate"}
	}
	return nil
}

// Configure stores the DRS and HA parts of a specification and notifies PropertyCollectors.
// VMware: vSphere API reference, ReconfigureComputeResource_Task with modify: settings that the specification leaves
// unset keep their values.
func Configure(ctx *simulator.Context, cluster *simulator.ClusterComputeResource, spec *types.ClusterConfigSpecEx) {
	ctx.WithLock(cluster, func() {
		config := *cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
		if spec.DrsConfig != nil {
			config.DrsConfig = mergeDRS(config.DrsConfig, *spec.DrsConfig)
		}
		if spec.DasConfig != nil {
			config.DasConfig = mergeHA(config.DasConfig, *spec.DasConfig)
		}
		config.DasVmConfig = mergeOverrides(config.DasVmConfig, spec.DasVmConfigSpec)
		ctx.Update(cluster, []types.PropertyChange{vcsim.Change("configurationEx", &config)})
	})
}

func mergeDRS(old, spec types.ClusterDrsConfigInfo) types.ClusterDrsConfigInfo {
	if spec.Enabled != nil {
		old.Enabled = spec.Enabled
	}
	if spec.EnableVmBehaviorOverrides != nil {
		old.EnableVmBehaviorOverrides = spec.EnableVmBehaviorOverrides
	}
	if spec.DefaultVmBehavior != "" {
		old.DefaultVmBehavior = spec.DefaultVmBehavior
	}
	if spec.VmotionRate != 0 {
		old.VmotionRate = spec.VmotionRate
	}
	old.Option = mergeOptions(old.Option, spec.Option)
	return old
}

func mergeHA(old, spec types.ClusterDasConfigInfo) types.ClusterDasConfigInfo {
	if spec.Enabled != nil {
		old.Enabled = spec.Enabled
	}
	if spec.AdmissionControlEnabled != nil {
		old.AdmissionControlEnabled = spec.AdmissionControlEnabled
	}
	if spec.AdmissionControlPolicy != nil {
		old.AdmissionControlPolicy = spec.AdmissionControlPolicy
	}
	if spec.FailoverLevel != 0 {
		old.FailoverLevel = spec.FailoverLevel
	}
	old.HostMonitoring = cmp.Or(spec.HostMonitoring, old.HostMonitoring)
	old.VmMonitoring = cmp.Or(spec.VmMonitoring, old.VmMonitoring)
	if spec.DefaultVmSettings != nil {
		old.DefaultVmSettings = spec.DefaultVmSettings
	}
	old.Option = mergeOptions(old.Option, spec.Option)
	return old
}

// mergeOptions sets advanced options of DRS and HA by key; an empty value removes the key.
// Ours: how a vCenter removes such an option is unknown (unproven).
func mergeOptions(old, spec []types.BaseOptionValue) []types.BaseOptionValue {
	out := slices.Clone(old)
	for _, o := range spec {
		v := o.GetOptionValue()
		out = slices.DeleteFunc(out, func(have types.BaseOptionValue) bool {
			return have.GetOptionValue().Key == v.Key
		})
		if v.Value != nil && v.Value != "" {
			out = append(out, o)
		}
	}
	return out
}
