package vm

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// CloneVMTask clones the virtual machine, and applies the changes of the clone as a reconfiguration. A linked clone
// needs a snapshot.
// VMware: vSphere API reference, VirtualMachineRelocateSpec.diskMoveType createNewChildDiskBacking,
// CloneSpec.snapshot.
// Ours: vcsim drops most changes, such as the reservation.
func (m *Methods) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	body := new(methods.CloneVM_TaskBody)
	if req.Spec.Location.DiskMoveType == string(
		types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking) && req.Spec.Snapshot == nil {
		body.Fault_ = vcsim.SoapFault(&types.InvalidArgument{InvalidProperty: "spec.snapshot"})
		return body
	}
	t := m.sim.Start(ctx, m.VirtualMachine, "cloneVMTask", "VirtualMachine.clone",
		func(j *vcsim.Job) (any, vcsim.Fault) { return m.clone(j, *req) })
	body.Res = &types.CloneVM_TaskResponse{Returnval: t}
	return body
}

// clone lets vcsim copy the virtual machine, then changes the copy, and starts it last.
func (m *Methods) clone(j *vcsim.Job, req types.CloneVM_Task) (any, vcsim.Fault) {
	if f := RefuseNetworks(j.Ctx, req.Spec.Location.DeviceChange); f != nil {
		return nil, f
	}
	if f := m.chooseHost(j.Ctx, &req.Spec.Location); f != nil {
		return nil, f
	}
	config, start := req.Spec.Config, req.Spec.PowerOn && !req.Spec.Template
	req.Spec.Config, req.Spec.PowerOn = nil, false
	j.Ctx.WithLock(m.VirtualMachine, func() {
		NumberDevices(m.Config.Hardware.Device, req.Spec.Location.DeviceChange)
	})
	result, fault := m.forwardAlone(j, func(c *simulator.Context) soap.HasFault {
		return m.VirtualMachine.CloneVMTask(c, &req)
	})
	if fault != nil {
		return nil, fault
	}
	m.keepProfiles(result.(vcsim.Ref), req.Spec.Location)
	clone := m.inherit(j, result.(vcsim.Ref), manual(req.Spec.Location.DeviceChange))
	if clone != nil && config != nil {
		j.Ctx.WithLock(clone.VirtualMachine, func() { nameCopies(clone.Config.Hardware.Device, config.DeviceChange) })
		_, fault = clone.reconfigure(j, &types.ReconfigVM_Task{This: clone.Self, Spec: *config})
	}
	if clone != nil && fault == nil && start {
		_, fault = clone.powerOn(j, &types.PowerOnVM_Task{This: clone.Self})
	}
	return result, fault
}

// chooseHost sets the host of a clone in another cluster, if the specification has only its pool.
// VMware: vSphere API reference, VirtualMachineRelocateSpec.host: DRS selects a host of the pool's cluster; a cluster
// without DRS requires one.
// Ours: the first host that can take it; vcsim leaves the clone on the host of its source.
func (m *Methods) chooseHost(ctx *simulator.Context, spec *types.VirtualMachineRelocateSpec) vcsim.Fault {
	if spec.Host != nil || spec.Pool == nil {
		return nil
	}
	pool, _ := m.sim.Registry.Get(*spec.Pool).(*simulator.ResourcePool)
	if pool == nil {
		return nil
	}
	cluster, _ := m.sim.Registry.Get(pool.Owner).(*simulator.ClusterComputeResource)
	if host, _, _ := m.place(ctx); cluster == nil || slices.Contains(cluster.Host, host) {
		return nil
	}
	drs := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx).DrsConfig
	for _, ref := range cluster.Host {
		run := m.machines.hosts.ByRef(ref).Runtime(ctx)
		if drs.Enabled != nil && *drs.Enabled && !run.InMaintenanceMode &&
			run.ConnectionState == types.HostSystemConnectionStateConnected {
			spec.Host = &ref
			return nil
		}
	}
	return &types.InvalidArgument{InvalidProperty: "spec.location.host"}
}

// nameCopies lets the changes of a clone's disks name its copies instead of the files of its source.
// Ours: the provider for vSphere of Cluster API sends the source's disk, with a larger capacity.
func nameCopies(copied []types.BaseVirtualDevice, changes []types.BaseVirtualDeviceConfigSpec) {
	for _, c := range changes {
		change := c.GetVirtualDeviceConfigSpec()
		disk, ok := change.Device.(*types.VirtualDisk)
		if !ok || change.Operation != types.VirtualDeviceConfigSpecOperationEdit {
			continue
		}
		if own, ok := object.VirtualDeviceList(copied).FindByKey(disk.Key).(*types.VirtualDisk); ok {
			disk.Backing = own.Backing
		}
	}
}

// manual returns the MAC addresses in changes of devices.
// VMware: vSphere API reference, VirtualEthernetCard.addressType manual.
func manual(changes []types.BaseVirtualDeviceConfigSpec) map[string]bool {
	found := map[string]bool{}
	for _, c := range changes {
		if card, ok := c.GetVirtualDeviceConfigSpec().Device.(types.BaseVirtualEthernetCard); ok {
			one := card.GetVirtualEthernetCard()
			found[one.MacAddress] = one.AddressType == string(types.VirtualEthernetCardMacTypeManual)
		}
	}
	return found
}

// inherit copies properties to a clone that vcsim does not copy, and sets unique MAC addresses of its network cards.
// VMware: vSphere API reference, VirtualMachineCloneSpec: a clone is a copy of the source; custom attributes are
// kept.
func (m *Methods) inherit(j *vcsim.Job, made vcsim.Ref, macs map[string]bool) *Methods {
	clone, ok := m.sim.Registry.Get(made).(*simulator.VirtualMachine)
	if !ok {
		return nil
	}
	var config types.VirtualMachineConfigInfo
	var values []types.BaseCustomFieldValue
	j.Ctx.WithLock(m.VirtualMachine, func() { config, values = *m.Config, slices.Clone(m.CustomValue) })
	manager := m.sim.Registry.Get(*m.sim.Client.ServiceContent.CustomFieldsManager).(*simulator.CustomFieldsManager)
	var fields []types.CustomFieldDef
	j.Ctx.WithLock(manager, func() { fields = slices.Clone(manager.Field) })
	j.Ctx.WithLock(clone, func() {
		copyConfig(clone.Config, &config, macs)
		list(clone.Config.Hardware.Device)
		clone.CustomValue, clone.Value = values, slices.Clone(values)
		for _, f := range fields {
			if f.ManagedObjectType == "" || f.ManagedObjectType == "VirtualMachine" {
				clone.AvailableField = append(clone.AvailableField, f)
			}
		}
	})
	m.sim.ShowAttributes(j.Ctx, made)
	return m.machines.Methods(clone)
}

// copyConfig copies the settings to a clone that vcsim does not copy, and sets all MAC addresses except the given
// ones.
func copyConfig(clone, source *types.VirtualMachineConfigInfo, given map[string]bool) {
	clone.Firmware, clone.Annotation = source.Firmware, source.Annotation
	clone.LatencySensitivity = source.LatencySensitivity
	clone.CpuHotAddEnabled, clone.MemoryHotAddEnabled = source.CpuHotAddEnabled, source.MemoryHotAddEnabled
	clone.MemoryReservationLockedToMax = source.MemoryReservationLockedToMax
	clone.MemoryAllocation = source.MemoryAllocation
	if v, ok := source.VAppConfig.(*types.VmConfigInfo); ok {
		own := *v
		own.Property = slices.Clone(v.Property)
		clone.VAppConfig = &own
	}
	for _, o := range source.ExtraConfig {
		same := func(other types.BaseOptionValue) bool {
			return other.GetOptionValue().Key == o.GetOptionValue().Key
		}
		if !slices.ContainsFunc(clone.ExtraConfig, same) {
			clone.ExtraConfig = append(clone.ExtraConfig, o)
		}
	}
	for _, d := range clone.Hardware.Device {
		if card, ok := d.(types.BaseVirtualEthernetCard); ok && !given[card.GetVirtualEthernetCard().MacAddress] {
			c := card.GetVirtualEthernetCard()
			c.AddressType = string(types.VirtualEthernetCardMacTypeAssigned)
			c.MacAddress = macAddress(clone.Uuid, c.Key)
		}
	}
}

// macAddress returns an address in the range that a vCenter assigns.
// VMware: VMware documentation: 00:50:56 with 80 to bf as fourth byte.
func macAddress(uuid string, key int32) string {
	var sum uint32 = 2166136261
	for _, c := range []byte(fmt.Sprint(uuid, key)) {
		sum = (sum ^ uint32(c)) * 16777619
	}
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", 0x80|byte(sum>>16)&0x3f, byte(sum>>8), byte(sum))
}
