package main

import (
	"net/http"
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// capacities returns the answers of a vCenter about a target and vGPU types.
func (r *running) capacities(
	target types.BaseDirectPathProfileManagerTargetEntity, names ...string,
) []types.BaseDirectPathProfileManagerCapacityResult {
	r.t.Helper()
	manager := r.c.ServiceContent.DirectPathProfileManager
	if manager == nil {
		r.t.Fatal("the vCenter has no DirectPathProfileManager")
	}
	req := &types.DirectPathProfileManagerQueryCapacity{This: *manager, Target: target}
	for _, name := range names {
		req.QuerySpec = append(req.QuerySpec, &types.DirectPathProfileManagerCapacityQueryByDeviceConfig{
			DeviceConfig: &types.DirectPathProfileManagerVmiopDirectPathConfig{VgpuProfile: name}})
	}
	res, err := methods.DirectPathProfileManagerQueryCapacity(r.ctx, r.c, req)
	r.must(err)
	return res.Returnval
}

// counts returns the numbers of one answer: in use, remaining, total, reserved without a user.
func (r *running) counts(target types.BaseDirectPathProfileManagerTargetEntity, name string) [4]int32 {
	r.t.Helper()
	info, ok := r.capacities(target, name)[0].(*types.DirectPathProfileManagerCapacityInfo)
	if !ok {
		r.t.Fatalf("no capacity of %s", name)
	}
	if info.Profile.Name != name {
		r.t.Errorf("the answer is about %s", info.Profile.Name)
	}
	return [4]int32{info.Consumed, info.Remaining, info.Max, info.UnusedReservation}
}

func TestTheCapacityForVGPUTypes(t *testing.T) {
	r := launch(t, "release: 9.0\n"+vgpuHosts)
	target := &types.DirectPathProfileManagerTargetHost{Host: r.host("esx03.lab").Reference()}
	cluster := &types.DirectPathProfileManagerTargetCluster{Cluster: *r.hostProperties("esx01.lab", "parent").Parent}
	if got := r.counts(target, "grid_t4-8c"); got != [4]int32{0, 2, 2, 0} {
		t.Errorf("an empty host: %v", got)
	}
	r.control(http.MethodPatch, "/hosts/esx03.lab",
		map[string]any{"vgpu_reservations": map[string]int{"grid_t4-8c": 1}}, nil)
	if got := r.counts(target, "grid_t4-8c"); got != [4]int32{0, 1, 2, 1} {
		t.Errorf("with a reservation: %v", got)
	}
	if got := r.counts(cluster, "grid_t4-16c"); got != [4]int32{2, 0, 3, 0} {
		t.Errorf("the cluster, another type next to the reservation: %v", got)
	}
	if len(r.hostProperties("esx03.lab", "config.graphicsInfo").Config.GraphicsInfo[0].Vm) != 0 {
		t.Error("a reservation is shown as a virtual machine")
	}
	r.allowHotMigration()
	if err := r.moveTo("w1", "esx03.lab"); err == nil {
		t.Error("a vGPU took reserved room")
	}
}

func TestWhatCannotBeAnsweredAboutCapacity(t *testing.T) {
	r := launch(t, "release: 9.0\n"+vgpuHosts)
	target := &types.DirectPathProfileManagerTargetHost{Host: r.host("esx03.lab").Reference()}
	unknown, is := r.capacities(target, "grid_x-1c")[0].(*types.DirectPathProfileManagerCapacityUnknown)
	if !is || len(unknown.FaultList) != 1 {
		t.Error("an unknown type has a capacity")
	}
	if status, _ := r.controlRaw(http.MethodPatch, "/hosts/esx03.lab",
		map[string]any{"vgpu_reservations": map[string]int{"grid_t4-8c": 3}}); status < http.StatusBadRequest {
		t.Errorf("more than fits can be reserved: %d", status)
	}
}

func TestAnOlderVCenterHasNoDirectPathProfiles(t *testing.T) {
	if r := released(t, "8.0 U3"); r.c.ServiceContent.DirectPathProfileManager != nil {
		t.Error("an 8.0 U3 has a DirectPathProfileManager")
	}
}

func TestTheGPUsOfVirtualMachines(t *testing.T) {
	for release, wants := range map[string]int{"9.0": 0, "9.1": 1} {
		r := launch(t, "release: "+release+"\n"+vgpuHosts)
		got := r.hostProperties("esx01.lab", "config.assignableHardwareBinding").Config.AssignableHardwareBinding
		if len(got) != wants || wants == 1 && (got[0].Vm != r.vm("w1").Reference()) {
			t.Errorf("%s: %v", release, got)
		}
	}
}
