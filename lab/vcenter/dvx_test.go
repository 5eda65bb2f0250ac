package main

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

const dvxHosts = `
release: 9.0
hardware:
  dvx: &dvx
    sockets: 2
    cores_per_socket: 16
    mhz: 2600
    memory_gb: 256
    nics: [{device: vmnic0, pci: "0000:18:00.0", driver: i40en, name: X710, vendor_id: 0x8086, device_id: 0x1572}]
    dvx_classes: [{name: moves, devices: 1, checkpoint: true}, {name: stays, devices: 2}]
  plain: {<<: *dvx, dvx_classes: []}
clusters:
  - name: gpu
    hosts:
      - {name: esx01.lab, hardware: dvx}
      - {name: esx02.lab, hardware: dvx}
      - {name: esx03.lab, hardware: plain}
vms:
  - {name: w1, host: esx01.lab, memory_mb: 2048}
  - {name: w2, host: esx01.lab, memory_mb: 2048}
`

func dvx(class string) *types.VirtualPCIPassthrough {
	return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
		Key: -1, Backing: &types.VirtualPCIPassthroughDvxBackingInfo{DeviceClass: class}}}
}

// allReserved is a change that reserves all memory.
func allReserved(spec types.VirtualMachineConfigSpec) types.VirtualMachineConfigSpec {
	spec.MemoryAllocation = &types.ResourceAllocationInfo{Reservation: types.NewInt64(2048)}
	return spec
}

func (r *running) dvxCounts(host, class string) [3]int32 {
	r.t.Helper()
	config := &types.DirectPathProfileManagerDvxDirectPathConfig{
		DvxBacking: types.VirtualPCIPassthroughDvxBackingInfo{DeviceClass: class}}
	res, err := methods.DirectPathProfileManagerQueryCapacity(r.ctx, r.c, &types.DirectPathProfileManagerQueryCapacity{
		This:   *r.c.ServiceContent.DirectPathProfileManager,
		Target: &types.DirectPathProfileManagerTargetHost{Host: r.host(host).Reference()},
		QuerySpec: []types.BaseDirectPathProfileManagerCapacityQuerySpec{
			&types.DirectPathProfileManagerCapacityQueryByDeviceConfig{DeviceConfig: config}}})
	r.must(err)
	info := res.Returnval[0].(*types.DirectPathProfileManagerCapacityInfo)
	return [3]int32{info.Consumed, info.Remaining, info.Max}
}

func TestDevicesOfAClassMoveIfTheClassDoes(t *testing.T) {
	r := launch(t, dvxHosts)
	classes := r.hostProperties("esx01.lab", "hardware.dvxClasses").Hardware.DvxClasses
	if len(classes) != 2 || !classes[0].CheckpointSupported || classes[1].CheckpointSupported {
		t.Fatalf("classes: %+v", classes)
	}
	for vm, class := range map[string]string{"w1": "moves", "w2": "stays"} {
		r.must(r.reconfigure(vm, allReserved(add(dvx(class)))))
		r.must(r.powerOn(vm))
	}
	if got := r.dvxCounts("esx01.lab", "moves"); got != [3]int32{1, 0, 1} {
		t.Errorf("capacity: %v", got)
	}
	if err := r.moveTo("w2", "esx02.lab"); err == nil {
		t.Error("a device without checkpoints moves")
	}
	if err := r.moveTo("w1", "esx03.lab"); err == nil {
		t.Error("a device moves to a host without its class")
	}
	r.must(r.moveTo("w1", "esx02.lab"))
	for host, want := range map[string][3]int32{"esx01.lab": {0, 1, 1}, "esx02.lab": {1, 0, 1}} {
		if got := r.dvxCounts(host, "moves"); got != want {
			t.Errorf("%s after the move: %v", host, got)
		}
	}
}
