package inventory

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/host/pci"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// machine creates a virtual machine of the description.
func (b *builder) machine(ctx context.Context, v datacentre.VM) error {
	h, pool, err := b.place(v)
	if err != nil {
		return err
	}
	spec, err := b.machineSpec(h, v)
	if err != nil {
		return err
	}
	folder, err := b.folder(ctx, v.Folder)
	if err != nil {
		return err
	}
	if pool, err = b.pool(ctx, pool, v.Pool); err != nil {
		return err
	}
	vm, err := b.create(ctx, folder, spec, pool, h)
	if err != nil {
		return err
	}
	if err := b.setAttributes(ctx, vm, v.Attributes); err != nil {
		return err
	}
	return b.finish(ctx, vm, v)
}

// create creates a virtual machine on a host.
// Ours: for a network card on a distributed switch, vcsim searches for each host of the cluster among the members of
// the switch (docs/vcsim.md). No client is connected yet, so the cluster temporarily shows only one host.
func (b *builder) create(
	ctx context.Context, folder *object.Folder, spec types.VirtualMachineConfigSpec, pool *object.ResourcePool,
	h *esxi.Host,
) (*object.VirtualMachine, error) {
	entity := b.sim.Registry.Get(*h.Entity.Parent).(*simulator.ClusterComputeResource)
	all := entity.Host
	entity.Host = []vcsim.Ref{h.Self}
	made, err := b.sim.Result(folder.CreateVM(ctx, spec, pool, object.NewHostSystem(b.sim.Client, h.Self)))
	entity.Host = all
	if err != nil {
		return nil, err
	}
	return object.NewVirtualMachine(b.sim.Client, made.(vcsim.Ref)), nil
}

func (b *builder) machineSpec(h *esxi.Host, v datacentre.VM) (types.VirtualMachineConfigSpec, error) {
	spec := types.VirtualMachineConfigSpec{
		Name: v.Name, GuestId: "ubuntu64Guest", NumCPUs: max(v.CPUs, 1), MemoryMB: max(v.MemoryMB, 1024),
		Annotation: v.Owner, Version: "vmx-20", Firmware: v.Firmware,
		Files: &types.VirtualMachineFileInfo{VmPathName: "[" + b.sim.Description.Datastores[0] + "]"},
	}
	if v.VGPU != "" || len(v.VGPUs) > 0 || v.Passthrough != "" || v.PVRDMA != "" {
		spec.MemoryReservationLockedToMax = types.NewBool(true)
		spec.MemoryAllocation = &types.ResourceAllocationInfo{Reservation: types.NewInt64(spec.MemoryMB)}
	}
	for key, value := range v.ExtraConfig {
		spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: key, Value: value})
	}
	devices, err := b.devices(h, v)
	if err != nil {
		return spec, err
	}
	spec.DeviceChange, err = devices.ConfigSpec(types.VirtualDeviceConfigSpecOperationAdd)
	return spec, err
}

func (b *builder) finish(ctx context.Context, vm *object.VirtualMachine, v datacentre.VM) error {
	if v.Snapshot != "" {
		if _, err := b.sim.Result(vm.CreateSnapshot(ctx, v.Snapshot, "", false, false)); err != nil {
			return err
		}
	}
	if v.Template {
		return vm.MarkAsTemplate(ctx)
	}
	if !v.PoweredOn {
		return nil
	}
	if _, err := b.sim.Result(vm.PowerOn(ctx)); err != nil || v.RunningHours == 0 {
		return err
	}
	m, _ := b.machines.Named(v.Name)
	running := time.Duration(v.RunningHours * float64(time.Hour))
	m.RunsSince(b.sim.Context(), b.sim.Clock.Now().Add(-running))
	return nil
}

// place finds the host and the pool of a virtual machine; the default is the first host.
func (b *builder) place(v datacentre.VM) (*esxi.Host, *object.ResourcePool, error) {
	for _, c := range b.sim.Description.Clusters {
		for _, spec := range c.Hosts {
			if v.Host == "" || spec.Name == v.Host {
				h, _ := b.hosts.Named(spec.Name)
				return h, b.pools[c.Name], nil
			}
		}
	}
	return nil, nil, fmt.Errorf("no host %q", v.Host)
}

func (b *builder) devices(h *esxi.Host, v datacentre.VM) (object.VirtualDeviceList, error) {
	var list object.VirtualDeviceList
	scsi, err := list.CreateSCSIController("pvscsi")
	if err != nil {
		return nil, err
	}
	disk := list.CreateDisk(scsi.(types.BaseVirtualController), vcsim.Ref{}, "")
	disk.CapacityInKB = 10 << 20
	disk.StorageIOAllocation = &types.StorageIOAllocationInfo{Limit: types.NewInt64(-1)}
	nic, err := list.CreateEthernetCard("vmxnet3", networkBacking())
	if err != nil {
		return nil, err
	}
	list = append(append(list, scsi, disk, nic), vgpus(v)...)
	if v.Passthrough != "" {
		list = append(list, h.PCI.Adapter(v.Passthrough))
	}
	if v.SRIOV != "" {
		list = append(list, sriovCard(v.SRIOV))
	}
	if v.PVRDMA == "" {
		return list, nil
	}
	card, err := b.rdmaCard(v.PVRDMA)
	return append(list, card), err
}

// vgpus returns the vGPUs of a virtual machine of the description.
func vgpus(v datacentre.VM) (list object.VirtualDeviceList) {
	profiles := v.VGPUs
	if v.VGPU != "" {
		profiles = append([]string{v.VGPU}, profiles...)
	}
	for i, profile := range profiles {
		list = append(list, &types.VirtualPCIPassthrough{
			VirtualDevice: types.VirtualDevice{Key: int32(-200 - i),
				Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile}}})
	}
	return list
}

func networkBacking() *types.VirtualEthernetCardNetworkBackingInfo {
	return &types.VirtualEthernetCardNetworkBackingInfo{
		VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: "VM Network"}}
}

// sriovCard returns an SR-IOV adapter of a NIC of the host.
func sriovCard(address string) *types.VirtualSriovEthernetCard {
	card := &types.VirtualSriovEthernetCard{SriovBacking: &types.VirtualSriovEthernetCardSriovBackingInfo{
		PhysicalFunctionBacking: &types.VirtualPCIPassthroughDeviceBackingInfo{
			Id: address, VendorId: pci.Signed(0x15b3)}}}
	card.Key, card.Backing = -101, networkBacking()
	return card
}

// rdmaCard returns a PVRDMA adapter on a distributed port group.
func (b *builder) rdmaCard(portgroup string) (types.BaseVirtualDevice, error) {
	for _, o := range b.sim.Registry.AllReference("DistributedVirtualPortgroup") {
		pg := o.(*simulator.DistributedVirtualPortgroup)
		if pg.Name != portgroup {
			continue
		}
		dvs := b.sim.Registry.Get(*pg.Config.DistributedVirtualSwitch).(*simulator.DistributedVirtualSwitch)
		card := &types.VirtualVmxnet3Vrdma{DeviceProtocol: "rocev2"}
		card.Key = -103
		card.Backing = &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
			Port: types.DistributedVirtualSwitchPortConnection{SwitchUuid: dvs.Uuid, PortgroupKey: pg.Key}}
		return card, nil
	}
	return nil, fmt.Errorf("no port group %q", portgroup)
}
