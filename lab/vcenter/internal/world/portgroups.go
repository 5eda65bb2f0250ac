package world

import (
	"slices"
	"strconv"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// CreateDVSTask lets vcsim make the switch, then fills in what it leaves empty.
func (m *folderMethods) CreateDVSTask(ctx *simulator.Context, req *types.CreateDVS_Task) soap.HasFault {
	t := m.world.start(ctx, m.Folder, "createDVS", "Folder.createDistributedVirtualSwitch", func(j *job) (types.AnyType, types.BaseMethodFault) {
		result, fault := j.stockTask(m.Folder, func(c *simulator.Context) soap.HasFault { return m.Folder.CreateDVSTask(c, req) })
		if fault == nil {
			m.world.finishSwitch(m.world.reg.Get(result.(ref)).(*simulator.DistributedVirtualSwitch))
		}
		return result, fault
	})
	return &methods.CreateDVS_TaskBody{Res: &types.CreateDVS_TaskResponse{Returnval: t}}
}

// DestroyTask removes a switch that nobody uses, with its port groups, from all hosts.
func (d *dvsMethods) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	t := d.world.start(ctx, d.DistributedVirtualSwitch, "destroy", "ManagedEntity.destroy", func(j *job) (types.AnyType, types.BaseMethodFault) {
		groups := slices.Clone(d.Portgroup)
		for _, group := range groups {
			if f := d.world.groupInUse(j.ctx, group); f != nil {
				return nil, f
			}
		}
		for _, member := range d.config().Host {
			d.world.host(*member.Config.Host).leave(j.ctx, d.Uuid)
		}
		for _, group := range groups {
			if f := d.world.destroyGroup(j, group); f != nil {
				return nil, f
			}
		}
		return j.stockTask(d.DistributedVirtualSwitch, func(c *simulator.Context) soap.HasFault { return d.DistributedVirtualSwitch.DestroyTask(c, req) })
	})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// portgroupMethods answers the calls to a distributed port group that vcsim takes too lightly.
type portgroupMethods struct {
	*simulator.DistributedVirtualPortgroup
	world *World
}

// ReconfigureDVPortgroupTask checks the version and changes what the specification names; vcsim would empty the rest.
func (p *portgroupMethods) ReconfigureDVPortgroupTask(ctx *simulator.Context, req *types.ReconfigureDVPortgroup_Task) soap.HasFault {
	t := p.world.start(ctx, p.DistributedVirtualPortgroup, "reconfigureDvPortgroup", "dvs.DistributedVirtualPortgroup.reconfigure", func(j *job) (types.AnyType, types.BaseMethodFault) {
		return nil, p.reconfigure(j.ctx, req.Spec)
	})
	return &methods.ReconfigureDVPortgroup_TaskBody{Res: &types.ReconfigureDVPortgroup_TaskResponse{Returnval: t}}
}

func (p *portgroupMethods) reconfigure(ctx *simulator.Context, spec types.DVPortgroupConfigSpec) (fault types.BaseMethodFault) {
	ctx.WithLock(p.DistributedVirtualPortgroup, func() {
		config := p.Config
		if spec.ConfigVersion != "" && spec.ConfigVersion != config.ConfigVersion {
			fault = new(types.ConcurrentAccess)
			return
		}
		version, _ := strconv.Atoi(config.ConfigVersion) // a group made by a client starts at ""
		config.ConfigVersion = strconv.Itoa(version + 1)
		config.Name = orText(spec.Name, config.Name)
		config.Description = orText(spec.Description, config.Description)
		if spec.NumPorts != 0 {
			config.NumPorts = spec.NumPorts
		}
		config.DefaultPortConfig = mergedPort(config.DefaultPortConfig, spec.DefaultPortConfig)
		ctx.Update(p.DistributedVirtualPortgroup, []types.PropertyChange{change("config", config), change("name", config.Name)})
	})
	return fault
}

// mergedPort is the old setting with the VLAN and the teaming of the new one, where it has them.
func mergedPort(old, base types.BaseDVPortSetting) types.BaseDVPortSetting {
	was, known := old.(*types.VMwareDVSPortSetting)
	spec, given := base.(*types.VMwareDVSPortSetting)
	if !known || !given {
		return old
	}
	merged := *was
	if spec.Vlan != nil {
		merged.Vlan = spec.Vlan
	}
	if spec.UplinkTeamingPolicy != nil {
		merged.UplinkTeamingPolicy = spec.UplinkTeamingPolicy
	}
	return &merged
}

// DestroyTask removes a port group that nobody uses.
func (p *portgroupMethods) DestroyTask(ctx *simulator.Context, _ *types.Destroy_Task) soap.HasFault {
	t := p.world.start(ctx, p.DistributedVirtualPortgroup, "destroy", "ManagedEntity.destroy", func(j *job) (types.AnyType, types.BaseMethodFault) {
		if f := p.world.groupInUse(j.ctx, p.Self); f != nil {
			return nil, f
		}
		return nil, p.world.destroyGroup(j, p.Self)
	})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// groupInUse says whether a virtual machine or a vmkernel adapter is connected to a port group.
func (w *World) groupInUse(ctx *simulator.Context, group ref) types.BaseMethodFault {
	used := &types.ResourceInUse{Type: group.Type, Name: group.Value}
	for _, entity := range w.reg.All("VirtualMachine") {
		vm, found := entity.(*simulator.VirtualMachine)
		connected := false
		if found {
			ctx.WithLock(vm, func() { connected = slices.Contains(vm.Network, group) })
		}
		if connected {
			return used
		}
	}
	for _, h := range w.everyHost() {
		net := h.networkNow()
		if slices.ContainsFunc(net.info.Vnic, func(v types.HostVirtualNic) bool {
			return v.Spec.DistributedVirtualPort != nil && v.Spec.DistributedVirtualPort.PortgroupKey == group.Value
		}) {
			return used
		}
	}
	return nil
}

// destroyGroup removes a port group, also from the networks of hosts and clusters, where vcsim leaves it.
func (w *World) destroyGroup(j *job, group ref) types.BaseMethodFault {
	object := w.reg.Get(group).(*simulator.DistributedVirtualPortgroup)
	_, fault := j.stockTask(object, func(c *simulator.Context) soap.HasFault {
		return object.DestroyTask(c, &types.Destroy_Task{This: group})
	})
	if fault == nil {
		w.forgetNetworks(j.ctx, group)
	}
	return fault
}

// forgetNetworks takes networks off all hosts and clusters.
func (w *World) forgetNetworks(ctx *simulator.Context, gone ...ref) {
	for _, h := range w.everyHost() {
		h.forgetNetworks(ctx, gone...)
	}
}

// forgetNetworks takes networks off the host, and off its cluster where no other host has them.
func (h *Host) forgetNetworks(ctx *simulator.Context, gone ...ref) {
	lost := func(r ref) bool { return slices.Contains(gone, r) }
	ctx.WithLock(h.entity, func() {
		ctx.Update(h.entity, []types.PropertyChange{change("network", slices.DeleteFunc(slices.Clone(h.entity.Network), lost))})
	})
	cluster, ok := h.world.reg.Get(*h.entity.Parent).(*simulator.ClusterComputeResource)
	if !ok {
		return
	}
	kept := map[ref]bool{}
	for _, r := range cluster.Host {
		other := h.world.host(r).entity
		ctx.WithLock(other, func() {
			for _, n := range other.Network {
				kept[n] = true
			}
		})
	}
	ctx.WithLock(cluster, func() {
		networks := slices.DeleteFunc(slices.Clone(cluster.Network), func(r ref) bool { return lost(r) && !kept[r] })
		ctx.Update(cluster, []types.PropertyChange{change("network", networks)})
	})
}

// everyHost is all hosts of the data centre.
func (w *World) everyHost() []*Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*Host
	for _, h := range w.hosts {
		out = append(out, h)
	}
	return out
}
