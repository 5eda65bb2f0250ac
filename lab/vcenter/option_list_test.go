package main

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// A host has the options in the published list of a host, with the same types.
func TestAHostHasTheOptionsOfAListedOne(t *testing.T) {
	r := launch(t, vgpuHosts)
	const level = "Config.HostAgent.level[Vmsvc].logLevel"
	h := r.hostProperties("esx01.lab", "config.option", "config.optionDef", "configManager.advancedOption")
	if len(h.Config.Option) != 1212 || len(h.Config.OptionDef) != 1212 {
		t.Errorf("%d options, %d definitions", len(h.Config.Option), len(h.Config.OptionDef))
	}
	values := map[string]any{}
	for _, o := range h.Config.Option {
		values[o.GetOptionValue().Key] = o.GetOptionValue().Value
	}
	for key, want := range map[string]any{"Disk.DiskMaxIOSize": int64(32767), "VMkernel.Boot.hyperthreading": true,
		"Security.AccountLockFailures": int32(5), level: "verbose", "Misc.HeartbeatTimeout": int64(90),
		"Config.HostAgent.plugins.hostsvc.esxAdminsGroup": "ESX Admins",
		"VMkernel.Boot.poisonMarker":                      int64(-6148914691236517206)} {
		if values[key] != want {
			t.Errorf("%s is %T %v", key, values[key], values[key])
		}
	}
	manager := object.NewOptionManager(r.c.Client, *h.ConfigManager.AdvancedOption)
	set := func(key string, value any) error {
		return manager.Update(r.ctx, []types.BaseOptionValue{&types.OptionValue{Key: key, Value: value}})
	}
	r.must(set(level, "info"))
	r.must(set("Security.AccountLockFailures", int32(3)))
	if set("Security.AccountLockFailures", int64(3)) == nil || set("NFS.MaxVolumes", int64(7)) == nil {
		t.Error("a value of another type, or out of its range, is taken")
	}
	for _, o := range r.hostProperties("esx02.lab", "config.option").Config.Option {
		if v := o.GetOptionValue(); v.Key == level && v.Value != "verbose" {
			t.Errorf("another host has %v", v.Value)
		}
	}
}
