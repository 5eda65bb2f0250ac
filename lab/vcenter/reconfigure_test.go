package main

import (
	"encoding/base64"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

const workshop = `
switches: [{name: rdma, uplinks: [vmnic2], portgroups: [{name: rdma-vm}]}]
host_defaults:
  hardware: t4_cx5
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: 550.90.05, vendor: NVIDIA}]
clusters:
  - name: gpu
    hosts: [{name: esx01.lab}, {name: esx02.lab, passthrough: [all]}]
vms:
  - {name: golden, host: esx01.lab, template: true, memory_mb: 2048}
  - {name: off, host: esx01.lab, memory_mb: 2048}
  - {name: "on", host: esx01.lab, powered_on: true}
  - {name: p1, host: esx02.lab, passthrough: gpu}
  - {name: p2, host: esx02.lab, passthrough: gpu}
`

func (r *running) reconfigure(vm string, spec types.VirtualMachineConfigSpec) error {
	r.t.Helper()
	task, err := r.vm(vm).Reconfigure(r.ctx, spec)
	r.must(err)
	return task.Wait(r.ctx)
}

func (r *running) config(vm string) *types.VirtualMachineConfigInfo {
	r.t.Helper()
	var m mo.VirtualMachine
	r.must(r.c.RetrieveOne(r.ctx, r.vm(vm).Reference(), []string{"config"}, &m))
	return m.Config
}

func add(devices ...types.BaseVirtualDevice) types.VirtualMachineConfigSpec {
	var spec types.VirtualMachineConfigSpec
	for _, d := range devices {
		spec.DeviceChange = append(spec.DeviceChange,
			&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: d})
	}
	return spec
}

func vgpu(profile string) *types.VirtualPCIPassthrough {
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
		Key: -1, Backing: &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile}}}
}

func (r *running) rdmaCard() *types.VirtualVmxnet3Vrdma {
	r.t.Helper()
	network, err := find.NewFinder(r.c.Client).Network(r.ctx, "/dc1/network/rdma-vm")
	r.must(err)
	backing, err := network.EthernetCardBackingInfo(r.ctx)
	r.must(err)
	card := &types.VirtualVmxnet3Vrdma{DeviceProtocol: "rocev2"}
	card.Key, card.Backing = -2, backing
	return card
}

func TestChangesThatARunningMachineDoesNotTakeAreRefused(t *testing.T) {
	r := launch(t, workshop)
	cores := int32(2)
	fault := faultOf(r.reconfigure("on", types.VirtualMachineConfigSpec{NumCPUs: 4}))
	if _, ok := fault.(*types.CpuHotPlugNotSupported); !ok {
		t.Error("CPUs were added hot")
	}
	fault = faultOf(r.reconfigure("on", types.VirtualMachineConfigSpec{MemoryMB: 4096}))
	if _, ok := fault.(*types.MemoryHotPlugNotSupported); !ok {
		t.Error("memory was added hot")
	}
	for what, spec := range map[string]types.VirtualMachineConfigSpec{
		"cores": {NumCoresPerSocket: &cores}, "vGPU": add(vgpu("grid_t4-16c")), "PVRDMA": add(r.rdmaCard())} {
		if _, ok := faultOf(r.reconfigure("on", spec)).(*types.InvalidPowerState); !ok {
			t.Errorf("%s changed hot", what)
		}
	}
	r.must(r.reconfigure("on", types.VirtualMachineConfigSpec{Annotation: "notes change hot"}))
}

func TestChangesAreCheckedAndNewDevicesNumbered(t *testing.T) {
	r := launch(t, workshop)
	stale := r.config("off").ChangeVersion
	r.must(r.reconfigure("off", types.VirtualMachineConfigSpec{ChangeVersion: stale, Annotation: "first"}))
	fault := faultOf(r.reconfigure("off", types.VirtualMachineConfigSpec{ChangeVersion: stale, Annotation: "second"}))
	if _, ok := fault.(*types.ConcurrentAccess); !ok {
		t.Error("a stale changeVersion was accepted")
	}
	if _, ok := faultOf(r.reconfigure("off", add(vgpu("grid_t4-32c")))).(*types.InvalidDeviceSpec); !ok {
		t.Error("an unknown vGPU type was accepted")
	}
	r.must(r.reconfigure("off", add(vgpu("grid_t4-8c"), vgpu("grid_t4-8c"), r.rdmaCard())))
	keys := map[int32]bool{}
	for _, d := range r.config("off").Hardware.Device {
		keys[d.GetVirtualDevice().Key] = true
	}
	if !keys[13000] || !keys[13001] || !keys[4000] {
		t.Errorf("keys %v", keys)
	}
	if _, ok := faultOf(r.reconfigure("off", add(r.rdmaCard()))).(*types.InvalidDeviceSpec); !ok {
		t.Error("a second PVRDMA adapter was accepted")
	}
	if f := faultOf(r.powerOn("off")); f == nil {
		t.Error("started without reserved memory")
	}
	locked := true
	r.must(r.reconfigure("off", types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: &locked, MemoryMB: 4096}))
	if got := *r.config("off").MemoryAllocation.Reservation; got != 4096 {
		t.Errorf("the locked reservation is %d", got)
	}
	r.must(r.powerOn("off"))
}

func (r *running) powerOn(vm string) error {
	r.t.Helper()
	task, err := r.vm(vm).PowerOn(r.ctx)
	r.must(err)
	return task.Wait(r.ctx)
}

func TestADeviceIsGivenToOneMachine(t *testing.T) {
	r := launch(t, workshop)
	r.must(r.powerOn("p1"))
	if _, ok := faultOf(r.powerOn("p2")).(*types.GenericVmConfigFault); !ok {
		t.Error("one device was given away twice")
	}
	r.finish(r.vm("p1").PowerOff(r.ctx))
	r.must(r.powerOn("p2"))
}

func TestACloneIsLikeItsTemplateAndHasAddressesOfItsOwn(t *testing.T) {
	r := launch(t, workshop)
	host, pool := r.host("esx01.lab").Reference(), r.pool("esx01.lab")
	folder, err := find.NewFinder(r.c.Client).Folder(r.ctx, "/dc1/vm")
	r.must(err)
	metadata := base64.StdEncoding.EncodeToString([]byte("local-hostname: \"a\"\n"))
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Host: &host, Pool: &pool},
		Config: &types.VirtualMachineConfigSpec{
			ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "guestinfo.metadata", Value: metadata}}}}
	macs := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		r.finish(r.vm("golden").Clone(r.ctx, folder, name, spec))
		for _, d := range object.VirtualDeviceList(r.config(name).Hardware.Device).SelectByType(
			(*types.VirtualEthernetCard)(nil)) {
			macs[d.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard().MacAddress] = true
		}
	}
	if len(macs) != 2 {
		t.Errorf("two clones have the addresses %v", macs)
	}
	r.must(r.powerOn("a"))
	if told := r.machine("a").Address; told == "" {
		t.Error("the guest tells no address")
	}
	spec.Location.DiskMoveType = string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
	if _, err = r.vm("golden").Clone(r.ctx, folder, "c", spec); err == nil {
		t.Error("a linked clone was made without a snapshot")
	}
}

// cloud-init takes its data from the properties of the OVF that a machine or its template came from, before guestinfo.
func TestAGuestReadsGuestinfoOnlyWithoutOVFProperties(t *testing.T) {
	r := launch(t, workshop)
	metadata := base64.StdEncoding.EncodeToString([]byte("local-hostname: \"a\"\n"))
	property := types.VAppPropertySpec{Info: &types.VAppPropertyInfo{Id: "user-data", Type: "string"},
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}}
	r.must(r.reconfigure("off", types.VirtualMachineConfigSpec{
		VAppConfig: &types.VmConfigSpec{Property: []types.VAppPropertySpec{property}}}))
	folder, err := find.NewFinder(r.c.Client).Folder(r.ctx, "/dc1/vm")
	r.must(err)
	pool := r.pool("esx01.lab")
	for name, removed := range map[string]bool{"kept": false, "removed": true} {
		r.finish(r.vm("off").Clone(r.ctx, folder, name, types.VirtualMachineCloneSpec{
			Location: types.VirtualMachineRelocateSpec{Pool: &pool},
			Config: &types.VirtualMachineConfigSpec{VAppConfigRemoved: &removed, ExtraConfig: []types.BaseOptionValue{
				&types.OptionValue{Key: "guestinfo.metadata", Value: metadata}}}}))
		r.must(r.powerOn(name))
		found := r.machineProperties(name, "config", "guest")
		if (found.Config.VAppConfig != nil) == removed {
			t.Errorf("%s: its vApp configuration is %v", name, found.Config.VAppConfig)
		}
		if (found.Guest.HostName == "a") != removed {
			t.Errorf("%s: its host name is %q", name, found.Guest.HostName)
		}
	}
}

// pool returns the root pool of a host's cluster.
func (r *running) pool(host string) types.ManagedObjectReference {
	pool, err := r.host(host).ResourcePool(r.ctx)
	r.must(err)
	return pool.Reference()
}

func TestDestroyKeepsDetachedDisksInTheFolder(t *testing.T) {
	r := launch(t, workshop)
	devices := object.VirtualDeviceList(r.config("off").Hardware.Device)
	scsi := devices.PickController((*types.VirtualSCSIController)(nil)).(types.BaseVirtualController)
	disk := devices.CreateDisk(scsi, types.ManagedObjectReference{}, "[shared] off/dataset.vmdk")
	disk.CapacityInKB = 1 << 20
	r.must(r.vm("off").AddDevice(r.ctx, disk))
	kept, _ := r.vm("off").Device(r.ctx)
	kept = kept.SelectByBackingInfo(disk.Backing)
	r.must(r.vm("off").RemoveDevice(r.ctx, true, kept...))
	r.finish(r.vm("off").Destroy(r.ctx))

	center, err := find.NewFinder(r.c.Client).DefaultDatacenter(r.ctx)
	r.must(err)
	manager := object.NewVirtualDiskManager(r.c.Client)
	if _, err := manager.QueryVirtualDiskUuid(r.ctx, "[shared] off/dataset.vmdk", center); err != nil {
		t.Error(err)
	}
	if _, err := manager.QueryVirtualDiskUuid(r.ctx, "[shared] off/off.vmdk", center); err == nil {
		t.Error("the disk of the machine stayed")
	}
}

// A change of a clone's disk that names the source's file changes the copy: the source keeps its disk.
func TestADestroyedCloneLeavesTheDiskOfItsSource(t *testing.T) {
	r := launch(t, workshop)
	folder, err := find.NewFinder(r.c.Client).Folder(r.ctx, "/dc1/vm")
	r.must(err)
	devices := object.VirtualDeviceList(r.config("golden").Hardware.Device)
	disk := devices.SelectByType((*types.VirtualDisk)(nil))[0].(*types.VirtualDisk)
	disk.CapacityInKB *= 2
	pool := r.pool("esx01.lab")
	grown := &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: disk}
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool},
		Config: &types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{grown}}}
	for _, name := range []string{"a", "b"} {
		r.finish(r.vm("golden").Clone(r.ctx, folder, name, spec))
		r.finish(r.vm(name).Destroy(r.ctx))
	}
}

// DRS places a clone in the cluster of its pool; without DRS, the client names a host.
func TestACloneIsPlacedInTheClusterOfItsPool(t *testing.T) {
	r := launch(t, `
host_defaults: {hardware: t4_cx5}
clusters:
  - {name: one, hosts: [{name: esx01.lab}]}
  - {name: with, drs: {enabled: true}, hosts: [{name: esx02.lab}]}
  - {name: without, drs: {enabled: false}, hosts: [{name: esx03.lab}]}
vms: [{name: golden, host: esx01.lab}]
`)
	folder, err := find.NewFinder(r.c.Client).Folder(r.ctx, "/dc1/vm")
	r.must(err)
	for host, fits := range map[string]bool{"esx01.lab": true, "esx02.lab": true, "esx03.lab": false} {
		pool := r.pool(host)
		task, err := r.vm("golden").Clone(r.ctx, folder, "on-"+host,
			types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: &pool}})
		r.must(err)
		if err = task.Wait(r.ctx); (err == nil) != fits {
			t.Errorf("%s: %v", host, err)
		} else if fits && *r.machineProperties("on-"+host, "runtime.host").Runtime.Host != r.host(host).Reference() {
			t.Errorf("the clone in the pool of %s is on another host", host)
		}
	}
}
