package main

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/front"
)

func (r *running) moduleSystem(host string) types.ManagedObjectReference {
	return *r.hostProperties(host, "configManager").ConfigManager.KernelModuleSystem
}

func (r *running) reboot(host string) {
	r.t.Helper()
	h := r.host(host)
	r.finish(h.EnterMaintenanceMode(r.ctx, 0, false, nil))
	res, err := methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h.Reference()})
	r.must(err)
	r.finish(object.NewTask(r.c.Client, res.Returnval), nil)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateConnected)
	r.finish(h.ExitMaintenanceMode(r.ctx, 0))
}

func TestModuleOptionsTakeEffectAtTheNextBoot(t *testing.T) {
	r := launch(t, "")
	system := r.moduleSystem("esx01.lab")
	_, err := methods.UpdateModuleOptionString(r.ctx, r.c,
		&types.UpdateModuleOptionString{This: system, Name: "nmlx5_core", Options: "max_vfs=8"})
	r.must(err)
	if _, fault := r.esxcli("esx01.lab", "system module parameters set", "append", "true", "module", "nmlx5_core",
		"parameterstring", "pfctx=0x08"); fault != "" {
		t.Fatal(fault)
	}
	configured, err := methods.QueryConfiguredModuleOptionString(
		r.ctx, r.c, &types.QueryConfiguredModuleOptionString{This: system, Name: "nmlx5_core"})
	r.must(err)
	if configured.Returnval != "max_vfs=8 pfctx=0x08" {
		t.Fatalf("configured: %q", configured.Returnval)
	}
	var before, after, neighbour esxi.Report
	r.control("GET", "/hosts/esx01.lab", nil, &before)
	r.reboot("esx01.lab")
	r.control("GET", "/hosts/esx01.lab", nil, &after)
	r.control("GET", "/hosts/esx02.lab", nil, &neighbour)
	if before.ModulesInEffect["nmlx5_core"] != "" || after.ModulesInEffect["nmlx5_core"] != "max_vfs=8 pfctx=0x08" {
		t.Errorf("in effect before %q, after %q", before.ModulesInEffect["nmlx5_core"],
			after.ModulesInEffect["nmlx5_core"])
	}
	if neighbour.ModulesStored["nmlx5_core"] != "" {
		t.Errorf("another host has the options too: %q", neighbour.ModulesStored["nmlx5_core"])
	}
	if before.BootTime >= after.BootTime {
		t.Errorf("boot time %s before, %s after", before.BootTime, after.BootTime)
	}
}

func TestUnknownModuleAndParameter(t *testing.T) {
	r := launch(t, "")
	_, err := methods.UpdateModuleOptionString(r.ctx, r.c,
		&types.UpdateModuleOptionString{This: r.moduleSystem("esx01.lab"), Name: "nope", Options: "a=1"})
	if _, ok := faultOf(err).(types.NotFound); !ok {
		t.Errorf("unknown module: %v", err)
	}
	if _, fault := r.esxcli("esx01.lab", "system module parameters set", "module", "nmlx5_core", "parameterstring",
		"nope=1"); fault != "Invalid Module Parameter: nope" {
		t.Errorf("unknown parameter: %q", fault)
	}
	_, _, err = r.esxcliErr("esx01.lab", "system module parameters set", "parameterstring", "a=1", "module",
		"nmlx5_core")
	if f, ok := faultOf(err).(types.InvalidArgument); !ok || f.InvalidProperty != "argument[1]" {
		t.Errorf("arguments out of order: %v", err)
	}
}

func TestHostOptionsAreCheckedAndPushed(t *testing.T) {
	r := launch(t, "")
	h := r.host("esx01.lab")
	m, err := h.ConfigManager().OptionManager(r.ctx)
	r.must(err)
	r.must(m.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "Net.PVRDMAVmknic", Value: "vmk1"}}))
	for _, v := range r.hostProperties("esx01.lab", "config.option").Config.Option {
		if o := v.GetOptionValue(); o.Key == "Net.PVRDMAVmknic" && o.Value != "vmk1" {
			t.Errorf("config.option says %v", o.Value)
		}
	}
	for _, bad := range []types.OptionValue{{Key: "Net.PVRDMAVmknic", Value: int64(1)},
		{Key: "Mem.ShareForceSalting", Value: int64(3)}, {Key: "Mem.ShareForceSalting", Value: "1"}} {
		err := m.Update(r.ctx, []types.BaseOptionValue{&bad})
		if f, ok := faultOf(err).(types.InvalidArgument); !ok || f.InvalidProperty != bad.Key {
			t.Errorf("%s=%v: %v", bad.Key, bad.Value, err)
		}
	}
	err = m.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "Net.Nope", Value: "x"}})
	if f, ok := faultOf(err).(types.InvalidName); !ok || f.Name != "Net.Nope" {
		t.Errorf("unknown key: %v", err)
	}
}

func TestVcenterOptionsKeepTheirType(t *testing.T) {
	r := launch(t, "")
	m := object.NewOptionManager(r.c.Client, *r.c.ServiceContent.Setting)
	err := m.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "vgpu.hotmigrate.enabled", Value: "true"}})
	if _, ok := faultOf(err).(types.InvalidArgument); !ok {
		t.Errorf("a string for a boolean: %v", err)
	}
	r.must(m.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: "vgpu.hotmigrate.enabled", Value: true}}))
	got, err := m.Query(r.ctx, "vgpu.hotmigrate.enabled")
	r.must(err)
	if got[0].GetOptionValue().Value != true {
		t.Errorf("value %v", got[0].GetOptionValue().Value)
	}
}

const oneBusyHost = `
host_defaults: {hardware: t4_cx5, reboot_seconds: 0.2}
clusters: [{name: gpu, hosts: [{name: esx01.lab}]}]
vms: [{name: busy, powered_on: true}]
`

func TestMaintenanceWaitsForRunningMachines(t *testing.T) {
	r := launch(t, oneBusyHost)
	h := r.host("esx01.lab")
	task, err := h.EnterMaintenanceMode(r.ctx, 3600, false, nil)
	r.must(err)
	r.letPass(2 * time.Hour)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.Timedout); !ok {
		t.Errorf("a busy host: %v", task.Wait(r.ctx))
	}
	task, err = h.EnterMaintenanceMode(r.ctx, 0, false, nil)
	r.must(err)
	r.finish(r.vm("busy").PowerOff(r.ctx))
	r.must(task.Wait(r.ctx))
	r.await(h.Reference(), "runtime.inMaintenanceMode", true)
	r.finish(h.ExitMaintenanceMode(r.ctx, 0))
	if _, err := h.ExitMaintenanceMode(r.ctx, 0); err == nil {
		t.Error("leaving maintenance mode twice was accepted")
	}
}

func TestRebootNeedsMaintenanceAndIsPushed(t *testing.T) {
	r := launch(t, "")
	h := r.host("esx01.lab")
	_, err := methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h.Reference()})
	if _, ok := faultOf(err).(types.InvalidState); !ok {
		t.Errorf("reboot in service: %v", err)
	}
	r.finish(h.EnterMaintenanceMode(r.ctx, 0, false, nil))
	r.control("PATCH", "/hosts/esx01.lab", map[string]any{"reboot_seconds": 600}, nil)
	_, err = methods.RebootHost_Task(r.ctx, r.c, &types.RebootHost_Task{This: h.Reference()})
	r.must(err)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateNotResponding)
	_, err = methods.QueryModules(r.ctx, r.c, &types.QueryModules{This: r.moduleSystem("esx02.lab")})
	r.must(err)
	_, err = h.ExitMaintenanceMode(r.ctx, 0)
	if _, ok := faultOf(err).(types.HostCommunication); !ok {
		t.Errorf("a call to a host that is down: %v", err)
	}
	r.letPass(10 * time.Minute)
	r.await(h.Reference(), "runtime.connectionState", types.HostSystemConnectionStateConnected)
}

func TestLogOfWrites(t *testing.T) {
	r := launch(t, "")
	var writes []front.Write
	r.control("GET", "/writes", nil, &writes)
	if len(writes) != 0 {
		t.Fatalf("writes by logging in and reading: %v", writes)
	}
	begin := time.Now().Add(-time.Second)
	_, fault := r.esxcli("esx03.lab", "system module parameters set", "module", "nmlx5_rdma", "parameterstring",
		"pcp_force=3")
	if fault != "" {
		t.Fatal(fault)
	}
	r.esxcli("esx03.lab", "system module parameters list", "module", "nmlx5_rdma")
	r.esxcli("esx03.lab", "software vib install", "dryrun", "true", "viburl", daemonVIB)
	r.control("GET", "/writes", nil, &writes)
	if len(writes) != 1 {
		t.Fatalf("%d writes: %v", len(writes), writes)
	}
	w := writes[0]
	if w.Method != "esxcli system module parameters set" || w.Name != "esx03.lab" || w.Type != "HostSystem" ||
		w.User != testUser || w.Result != "ok" || w.Time.Before(begin) {
		t.Errorf("the write: %+v", w)
	}
	r.control("DELETE", "/writes", nil, nil)
	fields, err := object.GetCustomFieldsManager(r.c.Client)
	r.must(err)
	note, err := fields.Add(r.ctx, "note", "HostSystem", nil, nil)
	r.must(err)
	r.must(fields.Set(r.ctx, r.host("esx02.lab").Reference(), note.Key, "seen"))
	r.control("GET", "/writes", nil, &writes)
	if len(writes) != 2 || writes[1].Method != "SetField" || writes[1].Name != "esx02.lab" ||
		writes[1].Type != "CustomFieldsManager" {
		t.Errorf("a custom attribute: %+v", writes)
	}
	r.control("DELETE", "/writes", nil, nil)
	r.control("GET", "/writes", nil, &writes)
	var calls map[string]int
	r.control("GET", "/calls", nil, &calls)
	if len(writes) != 0 || calls["esxcli system module parameters list"] != 1 || calls["Login"] != 1 {
		t.Errorf("writes %v, calls %v", writes, calls)
	}
}
