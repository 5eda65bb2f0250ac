package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vm"
)

const vgpuHosts = `
host_defaults:
  hardware: t4_cx5
  vmotion_seconds: 0.1
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: 550.90.05, vendor: NVIDIA}]
clusters: [{name: gpu, hosts: [{name: "esx%02d.lab", count: 3}]}]
vms:
  - {name: "w%d", count: 2, host: "esx%02d.lab", powered_on: true, vgpu: grid_t4-16c}
  - {name: spare, host: esx01.lab, vgpu: grid_t4-16c}
  - {name: plain, host: esx01.lab, powered_on: true}
`

func (r *running) moveTo(vm, host string) error {
	r.t.Helper()
	target := r.host(host).Reference()
	task, err := r.vm(vm).Relocate(r.ctx, types.VirtualMachineRelocateSpec{Host: &target},
		types.VirtualMachineMovePriorityDefaultPriority)
	r.must(err)
	return task.Wait(r.ctx)
}

func (r *running) allowHotMigration() {
	r.t.Helper()
	m := object.NewOptionManager(r.c.Client, *r.c.ServiceContent.Setting)
	r.must(m.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "vgpu.hotmigrate.enabled", Value: true}}))
}

func (r *running) machine(name string) vm.Report {
	r.t.Helper()
	var report vm.Report
	r.control("GET", "/vms/"+name, nil, &report)
	return report
}

func TestVGPUMachinesMoveOnlyWhenAllowedAndWhereThereIsRoom(t *testing.T) {
	r := launch(t, vgpuHosts)
	if _, ok := faultOf(r.moveTo("w1", "esx03.lab")).(*types.VMotionNotSupported); !ok {
		t.Error("moved while hot migration is off")
	}
	r.allowHotMigration()
	if _, ok := faultOf(r.moveTo("w1", "esx02.lab")).(*types.InsufficientGraphicsResourcesFault); !ok {
		t.Error("moved to a full GPU")
	}
	r.must(r.moveTo("w1", "esx03.lab"))
	if h := r.machine("w1").Host; h != "esx03.lab" {
		t.Errorf("w1 is on %s", h)
	}
	self := r.vm("w1").Reference()
	if slices.Contains(r.hostProperties("esx01.lab", "vm").Vm, self) ||
		!slices.Contains(r.hostProperties("esx03.lab", "vm").Vm, self) {
		t.Error("the hosts' lists did not follow")
	}
	if info := r.hostProperties("esx03.lab", "config.graphicsInfo").Config.GraphicsInfo[0]; len(info.Vm) != 1 ||
		info.Vm[0] != self {
		t.Errorf("the GPU carries %v", info.Vm)
	}
	r.finish(r.vm("spare").PowerOn(r.ctx))
}

func TestMoveTellsItsStory(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.allowHotMigration()
	target := r.host("esx03.lab").Reference()
	r.control("PATCH", "/hosts/esx01.lab", map[string]any{"vmotion_seconds": 3600}, nil)
	task, err := r.vm("w1").Relocate(r.ctx, types.VirtualMachineRelocateSpec{Host: &target},
		types.VirtualMachineMovePriorityDefaultPriority)
	r.must(err)
	name, err := r.vm("w1").ObjectName(r.ctx) // clients can read the machine while it moves
	r.must(err)
	if name != "w1" {
		t.Errorf("read %q", name)
	}
	r.letPass(30 * time.Minute)
	r.await(task.Reference(), "info.progress", int32(47))
	r.letPass(30 * time.Minute)
	r.must(task.Wait(r.ctx))
	var info mo.Task
	r.must(r.c.RetrieveOne(r.ctx, task.Reference(), []string{"info"}, &info))
	if took := info.Info.CompleteTime.Sub(*info.Info.StartTime).Round(time.Minute); took != time.Hour {
		t.Errorf("the move took %v", took)
	}
	events, err := event.NewManager(r.c.Client).QueryEvents(
		r.ctx, types.EventFilterSpec{EventChainId: info.Info.EventChainId})
	r.must(err)
	slices.SortFunc(events, func(a, b types.BaseEvent) int { return int(a.GetEvent().Key - b.GetEvent().Key) })
	var kinds []string
	for _, e := range events {
		switch x := e.(type) {
		case *types.TaskEvent:
			kinds = append(kinds, fmt.Sprint(x.Info.DescriptionId, " is ", x.Info.State, " ", x.Key == x.ChainId))
		case *types.VmBeingHotMigratedEvent:
			kinds = append(kinds, "begin to "+x.DestHost.Name)
		case *types.EventEx:
			kinds = append(kinds, fmt.Sprint(x.EventTypeId, " to ", x.Arguments[0].Value))
		case *types.VmMigratedEvent:
			kinds = append(kinds, "end from "+x.SourceHost.Name+" on "+x.Host.Name)
		}
	}
	encrypted := "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent to esx03.lab"
	begun := "VirtualMachine.relocate is queued true"
	if !slices.Equal(kinds, []string{begun, encrypted, "end from esx01.lab on esx03.lab"}) {
		t.Errorf("events: %v", kinds)
	}
}

func TestMovesFollowTheEncryptionOfHostsAndMachine(t *testing.T) {
	third := "count: 2}, {name: esx03.lab, encrypted_vmotion: false}"
	r := launch(t, strings.Replace(vgpuHosts, "count: 3}", third, 1))
	set := func(mode string) {
		r.must(r.reconfigure("plain", types.VirtualMachineConfigSpec{MigrateEncryption: mode}))
	}
	set("required")
	if _, ok := faultOf(r.moveTo("plain", "esx03.lab")).(*types.VMotionNotSupported); !ok {
		t.Error("moved to a host that cannot encrypt the move")
	}
	set("opportunistic")
	r.must(r.moveTo("plain", "esx03.lab"))
}

func TestMoveToAHostInMaintenanceIsRefused(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.enterMaintenance("esx03.lab")
	if _, ok := faultOf(r.moveTo("plain", "esx03.lab")).(*types.InvalidHostState); !ok {
		t.Error("moved to a host in maintenance mode")
	}
}

func TestChecksBeforeAMove(t *testing.T) {
	r := launch(t, vgpuHosts)
	target := r.host("esx02.lab").Reference()
	res, err := methods.CheckMigrate_Task(r.ctx, r.c,
		&types.CheckMigrate_Task{This: *r.c.ServiceContent.VmProvisioningChecker, Vm: r.vm("w1").Reference(),
			Host: &target})
	r.must(err)
	info, err := object.NewTask(r.c.Client, res.Returnval).WaitForResult(r.ctx)
	r.must(err)
	results := info.Result.(types.ArrayOfCheckResult).CheckResult
	if len(results) != 1 || len(results[0].Error) != 1 || info.Entity.Type != "VirtualMachine" {
		t.Errorf("results: %+v", results)
	}
}

// hypervisor starts a listener that sends the orders it receives to the channel.
func hypervisor(t *testing.T) (string, chan vm.Order) {
	t.Helper()
	orders := make(chan vm.Order, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o vm.Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			t.Error(err)
		}
		orders <- o
	}))
	t.Cleanup(server.Close)
	return server.URL, orders
}

// next returns the next order that the listener receives.
func (r *running) next(orders chan vm.Order) vm.Order {
	r.t.Helper()
	select {
	case o := <-orders:
		return o
	case <-time.After(deadline):
		r.t.Fatal("no order came")
		return vm.Order{}
	}
}

func TestExternalModeEndsTasksWhenTold(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.allowHotMigration()
	url, orders := hypervisor(t)
	r.control("PUT", "/external", map[string]any{"listener": url, "ops": vm.Ops}, nil)
	target := r.host("esx03.lab").Reference()
	task, err := r.vm("w1").Relocate(r.ctx, types.VirtualMachineRelocateSpec{Host: &target},
		types.VirtualMachineMovePriorityDefaultPriority)
	r.must(err)
	o := r.next(orders)
	if o.Op != "Relocate" || o.VM != "w1" || o.Source != "esx01.lab" || o.Target != "esx03.lab" ||
		o.MOID != r.vm("w1").Reference().Value {
		t.Errorf("order: %+v", o)
	}
	r.control("POST", "/external/"+o.ID, map[string]any{"progress": 42}, nil)
	r.await(task.Reference(), "info.progress", int32(42))
	if h := r.machine("w1").Host; h != "esx01.lab" {
		t.Errorf("moved to %s before it was done", h)
	}
	r.control("POST", "/external/"+o.ID, map[string]any{"done": true}, nil)
	r.must(task.Wait(r.ctx))
	if status, _ := r.controlRaw("POST", "/external/"+o.ID,
		map[string]any{"done": true}); status != http.StatusNotFound {
		t.Errorf("a closed order took news: %d", status)
	}

	task, err = r.vm("w1").PowerOff(r.ctx)
	r.must(err)
	o = r.next(orders)
	r.control("POST", "/external/"+o.ID, map[string]any{"failed": "The node hangs."}, nil)
	if err := task.Wait(r.ctx); o.Op != "PowerOff" || err == nil || err.Error() != "The node hangs." ||
		!r.machine("w1").On {
		t.Errorf("order %+v, task: %v", o, err)
	}

	r.must(r.vm("w1").ShutdownGuest(r.ctx))
	o = r.next(orders)
	if o.Op != "ShutdownGuest" || !r.machine("w1").On {
		t.Errorf("the guest shuts down while it is on: %+v", o)
	}
	r.control("POST", "/external/"+o.ID, map[string]any{"done": true}, nil)
	r.await(r.vm("w1").Reference(), "runtime.powerState", types.VirtualMachinePowerStatePoweredOff)
}

func TestListenerThatIsGoneFailsTheTask(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.control("PUT", "/external", map[string]any{"listener": "http://127.0.0.1:1/", "ops": []string{"PowerOff"}}, nil)
	task, err := r.vm("plain").PowerOff(r.ctx)
	r.must(err)
	if task.Wait(r.ctx) == nil || !r.machine("plain").On {
		t.Error("powered off without the listener")
	}
	if status, _ := r.controlRaw("PUT", "/external",
		map[string]any{"listener": "http://127.0.0.1:1/", "ops": []string{"Fly"}}); status != http.StatusBadRequest {
		t.Errorf("an unknown operation: %d", status)
	}
}

func TestGuestWithoutMetadataNeverHadTools(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.finish(r.vm("plain").PowerOff(r.ctx))
	r.finish(r.vm("plain").PowerOn(r.ctx))
	r.await(r.vm("plain").Reference(), "guest.toolsVersionStatus2", "guestToolsNotInstalled")
}

func TestGuestTellsItsAddress(t *testing.T) {
	r := launch(t, vgpuHosts)
	r.control("PUT", "/vms/w1/guest", map[string]any{"hostname": "worker1", "address": "10.88.0.11"}, nil)
	r.await(r.vm("w1").Reference(), "guest.ipAddress", "10.88.0.11")
	r.await(r.vm("w1").Reference(), "guest.toolsVersionStatus2", "guestToolsUnmanaged")
	r.finish(r.vm("w1").PowerOff(r.ctx))
	if a := r.machine("w1").Address; a != "" {
		t.Errorf("a machine that is off has the address %s", a)
	}
	if info := r.hostProperties("esx01.lab", "config.graphicsInfo").Config.GraphicsInfo[0]; len(info.Vm) != 0 {
		t.Errorf("the GPU still carries %v", info.Vm)
	}
	r.finish(r.vm("w1").Destroy(r.ctx))
}
