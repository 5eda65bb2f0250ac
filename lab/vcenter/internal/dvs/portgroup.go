package dvs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Create creates a distributed switch with vcsim, and sets the properties that vcsim leaves empty.
// VMware: pyVmomi 9.1, faults of CreateDVS_Task: DuplicateName. vcsim returns InvalidArgument.
// Ours: configVersion starts at 1, and uplink port groups are marked as such (unproven).
func Create(
	ctx *simulator.Context, sim *vcsim.Sim, fabric *network.Fabric, folder *simulator.Folder,
	req *types.CreateDVS_Task,
) soap.HasFault {
	t := sim.Start(ctx, folder, "createDVS", "Folder.createDistributedVirtualSwitch",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			result, fault := j.ForwardTask(folder, func(c *simulator.Context) soap.HasFault {
				return folder.CreateDVSTask(c, req)
			})
			if wrong, ok := fault.(*types.InvalidArgument); ok && wrong.InvalidProperty == "name" {
				name := req.Spec.ConfigSpec.GetDVSConfigSpec().Name
				return nil, &types.DuplicateName{Name: name, Object: folder.Self}
			}
			if fault != nil {
				return nil, fault
			}
			Finish(sim, result.(vcsim.Ref))
			made := sim.Registry.Get(result.(vcsim.Ref)).(*simulator.DistributedVirtualSwitch)
			return result, (&SwitchMethods{DistributedVirtualSwitch: made, Sim: sim, Fabric: fabric}).join(j, req)
		})
	return &methods.CreateDVS_TaskBody{Res: &types.CreateDVS_TaskResponse{Returnval: t}}
}

// join adds the hosts in the specification of a new switch.
// VMware: vSphere API reference, DVSCreateSpec.configSpec.host. vcsim creates the switch without them.
func (d *SwitchMethods) join(j *vcsim.Job, req *types.CreateDVS_Task) vcsim.Fault {
	hosts := req.Spec.ConfigSpec.GetDVSConfigSpec().Host
	if len(hosts) == 0 {
		return nil
	}
	spec := &types.DVSConfigSpec{Host: slices.Clone(hosts)}
	for i := range spec.Host {
		spec.Host[i].Operation = string(types.ConfigSpecOperationAdd)
	}
	if f := d.refuse(j.Ctx, spec); f != nil {
		return f
	}
	if f := d.changeMembers(j, &types.ReconfigureDvs_Task{This: d.Self, Spec: spec}); f != nil {
		return f
	}
	d.store(j.Ctx, spec)
	return nil
}

// DestroyTask removes an unused switch and its port groups from all hosts.
// Ours: ResourceInUse for a switch in use; the declared fault is VimFault (unproven).
func (d *SwitchMethods) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	t := d.Sim.Start(ctx, d.DistributedVirtualSwitch, "destroy", "ManagedEntity.destroy",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			groups := slices.Clone(d.Portgroup)
			for _, group := range groups {
				if f := groupInUse(j.Ctx, d.Fabric, group); f != nil {
					return nil, f
				}
			}
			for _, member := range d.config().Host {
				d.Fabric.ByRef(*member.Config.Host).LeaveSwitch(j.Ctx, d.Uuid)
			}
			for _, group := range groups {
				if f := destroyGroup(j, d.Fabric, group); f != nil {
					return nil, f
				}
			}
			return j.ForwardTask(d.DistributedVirtualSwitch, func(c *simulator.Context) soap.HasFault {
				return d.DistributedVirtualSwitch.DestroyTask(c, req)
			})
		})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// PortgroupMethods answers the calls to a distributed port group that vcsim answers without checks.
type PortgroupMethods struct {
	*simulator.DistributedVirtualPortgroup
	Sim    *vcsim.Sim
	Fabric *network.Fabric
}

// ReconfigureDVPortgroupTask changes the settings in the specification, if its configVersion is current.
// VMware: pyVmomi 9.1, faults of ReconfigureDVPortgroup_Task: ConcurrentAccess. vcsim clears all other settings.
func (p *PortgroupMethods) ReconfigureDVPortgroupTask(
	ctx *simulator.Context, req *types.ReconfigureDVPortgroup_Task,
) soap.HasFault {
	t := p.Sim.Start(ctx, p.DistributedVirtualPortgroup, "reconfigureDvPortgroup",
		"dvs.DistributedVirtualPortgroup.reconfigure", func(j *vcsim.Job) (any, vcsim.Fault) {
			return nil, p.reconfigure(j.Ctx, req.Spec)
		})
	return &methods.ReconfigureDVPortgroup_TaskBody{Res: &types.ReconfigureDVPortgroup_TaskResponse{Returnval: t}}
}

func (p *PortgroupMethods) reconfigure(ctx *simulator.Context, spec types.DVPortgroupConfigSpec) (fault vcsim.Fault) {
	ctx.WithLock(p.DistributedVirtualPortgroup, func() {
		config := p.Config
		if spec.ConfigVersion != "" && spec.ConfigVersion != config.ConfigVersion {
			fault = new(types.ConcurrentAccess)
			return
		}
		version, _ := strconv.Atoi(config.ConfigVersion) // a group from a client starts with ""
		config.ConfigVersion = strconv.Itoa(version + 1)
		config.Name = cmp.Or(spec.Name, config.Name)
		config.Description = cmp.Or(spec.Description, config.Description)
		config.BackingType = cmp.Or(spec.BackingType, config.BackingType)
		config.LogicalSwitchUuid = cmp.Or(spec.LogicalSwitchUuid, config.LogicalSwitchUuid)
		if spec.NumPorts != 0 {
			config.NumPorts = spec.NumPorts
		}
		config.DefaultPortConfig = mergedPort(config.DefaultPortConfig, spec.DefaultPortConfig)
		ctx.Update(p.DistributedVirtualPortgroup,
			[]types.PropertyChange{vcsim.Change("config", config), vcsim.Change("name", config.Name)})
	})
	return fault
}

// mergedPort returns the old port setting with the VLAN and the teaming of the new one, if the new one has them.
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

// DestroyTask removes an unused port group.
// Ours: ResourceInUse for a port group in use; the declared fault is VimFault (unproven).
func (p *PortgroupMethods) DestroyTask(ctx *simulator.Context, _ *types.Destroy_Task) soap.HasFault {
	t := p.Sim.Start(ctx, p.DistributedVirtualPortgroup, "destroy", "ManagedEntity.destroy",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			if f := groupInUse(j.Ctx, p.Fabric, p.Self); f != nil {
				return nil, f
			}
			return nil, destroyGroup(j, p.Fabric, p.Self)
		})
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: t}}
}

// groupInUse returns ResourceInUse if a virtual machine or a vmkernel adapter is connected to a port group.
func groupInUse(ctx *simulator.Context, fabric *network.Fabric, group vcsim.Ref) vcsim.Fault {
	used := &types.ResourceInUse{Type: group.Type, Name: group.Value}
	for _, entity := range ctx.Map.All("VirtualMachine") {
		vm, found := entity.(*simulator.VirtualMachine)
		connected := false
		if found {
			ctx.WithLock(vm, func() { connected = slices.Contains(vm.Network, group) })
		}
		if connected {
			return used
		}
	}
	for _, h := range fabric.All() {
		net := h.Current()
		if slices.ContainsFunc(net.Info.Vnic, func(v types.HostVirtualNic) bool {
			return v.Spec.DistributedVirtualPort != nil && v.Spec.DistributedVirtualPort.PortgroupKey == group.Value
		}) {
			return used
		}
	}
	return nil
}

// destroyGroup removes a port group, also from the networks of hosts and clusters, from which vcsim does not remove
// it.
func destroyGroup(j *vcsim.Job, fabric *network.Fabric, group vcsim.Ref) vcsim.Fault {
	object := j.Ctx.Map.Get(group).(*simulator.DistributedVirtualPortgroup)
	_, fault := j.ForwardTask(object, func(c *simulator.Context) soap.HasFault {
		return object.DestroyTask(c, &types.Destroy_Task{This: group})
	})
	if fault == nil {
		for _, h := range fabric.All() {
			h.RemoveNetworks(j.Ctx, group)
		}
	}
	return fault
}

// Finish sets configVersion and default port settings of a new switch and marks its uplink port groups, which vcsim
// leaves empty.
// VMware: vSphere API reference, DVPortgroupConfigInfo.uplink, DVSConfigInfo.defaultPortConfig (not optional); tag
// SYSTEM/DVS.UPLINKPG of uplink port groups.
func Finish(sim *vcsim.Sim, made vcsim.Ref) {
	dvs := sim.Registry.Get(made).(*simulator.DistributedVirtualSwitch)
	config := dvs.Config.(*types.VMwareDVSConfigInfo)
	config.ConfigVersion, config.UplinkPortgroup = "1", nil
	dvs.Uuid = inGroups(dvs.Uuid)
	config.Uuid, dvs.Summary.Uuid = dvs.Uuid, dvs.Uuid
	if config.DefaultPortConfig == nil {
		config.DefaultPortConfig = &types.VMwareDVSPortSetting{}
	}
	// A separate task creates the uplink port group. It locks the switch before this task ends, until it is done.
	sim.Registry.WithLock(sim.Context(), dvs, func() { markUplinks(sim, dvs, config) })
}

func markUplinks(sim *vcsim.Sim, dvs *simulator.DistributedVirtualSwitch, config *types.VMwareDVSConfigInfo) {
	for _, pg := range dvs.Portgroup {
		group := sim.Registry.Get(pg).(*simulator.DistributedVirtualPortgroup)
		group.Config.ConfigVersion = "1"
		isUplink := strings.Contains(group.Name, "-DVUplinks")
		group.Config.Uplink = &isUplink
		if isUplink {
			config.UplinkPortgroup = append(config.UplinkPortgroup, pg)
			group.Tag = []types.Tag{{Key: "SYSTEM/DVS.UPLINKPG"}}
		}
	}
}

// inGroups returns a UUID in the format of distributed switches: groups of two digits, with a dash in the middle.
// VMware: vSphere API reference, DistributedVirtualSwitch.uuid; public dumps show "50 1e ..-.. ..".
func inGroups(uuid string) string {
	digits := strings.ReplaceAll(uuid, "-", "")
	if len(digits) != 32 {
		return uuid
	}
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs[:8], " ") + "-" + strings.Join(pairs[8:], " ")
}
