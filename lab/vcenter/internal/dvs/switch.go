// Package dvs simulates the distributed switches and their port groups.
//
// vcsim: creates switches and port groups, adds and removes hosts.
package dvs

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// SwitchMethods answers the calls to a distributed switch; for ReconfigureDvs_Task, vcsim stores only the hosts.
type SwitchMethods struct {
	*simulator.DistributedVirtualSwitch
	Sim    *vcsim.Sim
	Fabric *network.Fabric
}

const mostDvsMTU = 9000

// ReconfigureDvsTask changes a switch and its host members, if the configVersion is current and every uplink exists.
// VMware: pyVmomi 9.1, faults of ReconfigureDvs_Task: ConcurrentAccess. vcsim drops maxMtu and the members' uplinks.
// Ours: InvalidArgument for an unknown NIC and for a maxMtu outside 1280 to 9000 (unproven).
func (d *SwitchMethods) ReconfigureDvsTask(ctx *simulator.Context, req *types.ReconfigureDvs_Task) soap.HasFault {
	t := d.Sim.Start(ctx, d.DistributedVirtualSwitch, "reconfigureDvsTask", "DistributedVirtualSwitch.reconfigure",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			if f := d.refuse(j.Ctx, req.Spec); f != nil {
				return nil, f
			}
			if f := d.changeMembers(j, req); f != nil {
				return nil, f
			}
			d.store(j.Ctx, req.Spec)
			return nil, nil
		})
	return &methods.ReconfigureDvs_TaskBody{Res: &types.ReconfigureDvs_TaskResponse{Returnval: t}}
}

func (d *SwitchMethods) config() *types.VMwareDVSConfigInfo {
	return d.Config.(*types.VMwareDVSConfigInfo)
}

// refuse returns the fault of an invalid specification, or nil if it is valid.
func (d *SwitchMethods) refuse(ctx *simulator.Context, spec types.BaseDVSConfigSpec) vcsim.Fault {
	var version string
	ctx.WithLock(d.DistributedVirtualSwitch, func() { version = d.config().ConfigVersion })
	if v := spec.GetDVSConfigSpec().ConfigVersion; v != "" && v != version {
		return new(types.ConcurrentAccess)
	}
	if s, ok := spec.(*types.VMwareDVSConfigSpec); ok && s.MaxMtu != 0 &&
		(s.MaxMtu < network.LeastMTU || s.MaxMtu > mostDvsMTU) {
		return &types.InvalidArgument{InvalidProperty: "spec.maxMtu"}
	}
	for _, m := range spec.GetDVSConfigSpec().Host {
		h := d.Fabric.ByRef(m.Host)
		if h == nil {
			return &types.ManagedObjectNotFound{Obj: m.Host}
		}
		if f := h.MissingUplink(m.Backing); f != nil {
			return f
		}
	}
	return nil
}

// changeMembers adds and removes hosts with vcsim, including all references.
func (d *SwitchMethods) changeMembers(j *vcsim.Job, req *types.ReconfigureDvs_Task) vcsim.Fault {
	spec := *req.Spec.GetDVSConfigSpec()
	spec.Host = slices.DeleteFunc(slices.Clone(spec.Host),
		func(m types.DistributedVirtualSwitchHostMemberConfigSpec) bool {
			return m.Operation == string(types.ConfigSpecOperationEdit)
		})
	inner := vcsim.Detached(j.Ctx)
	var task vcsim.Ref
	inner.WithLock(d.DistributedVirtualSwitch, func() {
		body := d.DistributedVirtualSwitch.ReconfigureDvsTask(
			inner, &types.ReconfigureDvs_Task{This: req.This, Spec: &spec})
		task = vcsim.TaskOf(body)
	})
	t := d.Sim.Registry.Get(task).(*simulator.Task)
	t.Wait()
	if t.Info.Error != nil {
		return t.Info.Error.Fault
	}
	return nil
}

// store stores the specification, shows the switch on its hosts and notifies PropertyCollectors.
func (d *SwitchMethods) store(ctx *simulator.Context, base types.BaseDVSConfigSpec) {
	spec := base.GetDVSConfigSpec()
	var config types.VMwareDVSConfigInfo
	ctx.WithLock(d.DistributedVirtualSwitch, func() {
		config = *d.config()
		version, _ := strconv.Atoi(config.ConfigVersion) // a switch from a client starts with ""
		config.ConfigVersion = strconv.Itoa(version + 1)
		config.Name = cmp.Or(spec.Name, config.Name)
		config.Description = cmp.Or(spec.Description, config.Description)
		if spec.UplinkPortPolicy != nil {
			config.UplinkPortPolicy = spec.UplinkPortPolicy
		}
		if s, ok := base.(*types.VMwareDVSConfigSpec); ok && s.MaxMtu != 0 {
			config.MaxMtu = s.MaxMtu
		}
		if s, ok := base.(*types.VMwareDVSConfigSpec); ok && s.LinkDiscoveryProtocolConfig != nil {
			config.LinkDiscoveryProtocolConfig = s.LinkDiscoveryProtocolConfig
		}
		config.Host = memberList(config.Host, spec.Host)
		ctx.Update(d.DistributedVirtualSwitch, []types.PropertyChange{vcsim.Change("config", &config)})
	})
	for _, m := range config.Host {
		d.Fabric.ByRef(*m.Config.Host).JoinSwitch(ctx, &config, m.Config.Backing)
	}
	for _, m := range spec.Host {
		if h := d.Fabric.ByRef(m.Host); h != nil && m.Operation == string(types.ConfigSpecOperationRemove) {
			h.LeaveSwitch(ctx, config.Uuid)
			h.RemoveNetworks(ctx, d.Portgroup...)
		}
	}
}

func memberList(
	old []types.DistributedVirtualSwitchHostMember, specs []types.DistributedVirtualSwitchHostMemberConfigSpec,
) []types.DistributedVirtualSwitchHostMember {
	out := slices.Clone(old)
	for _, s := range specs {
		i := slices.IndexFunc(out, func(m types.DistributedVirtualSwitchHostMember) bool {
			return *m.Config.Host == s.Host
		})
		host := s.Host
		member := types.DistributedVirtualSwitchHostMember{
			Status: "up", Config: types.DistributedVirtualSwitchHostMemberConfigInfo{
				Host: &host, MaxProxySwitchPorts: 2048, Backing: s.Backing}}
		if member.Config.Backing == nil {
			member.Config.Backing = &types.DistributedVirtualSwitchHostMemberPnicBacking{}
		}
		switch {
		case s.Operation == string(types.ConfigSpecOperationRemove) && i >= 0:
			out = slices.Delete(out, i, i+1)
		case s.Operation != string(types.ConfigSpecOperationRemove) && i >= 0:
			out[i] = member
		case s.Operation == string(types.ConfigSpecOperationAdd):
			out = append(out, member)
		}
	}
	return out
}
