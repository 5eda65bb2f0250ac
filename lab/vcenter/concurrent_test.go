package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/front"
)

// each returns a separate client that works on one host.
func (r *running) each(t *testing.T) *running {
	t.Helper()
	other := &running{t: t, lab: r.lab, ctx: r.ctx}
	other.c = other.client()
	return other
}

// readAll reads the properties that the writers change, of all hosts.
func (r *running) readAll() error {
	v, err := view.NewManager(r.c.Client).CreateContainerView(
		r.ctx, r.c.ServiceContent.RootFolder, []string{"HostSystem"}, true)
	if err != nil {
		return err
	}
	var hosts []mo.HostSystem
	if err := v.Retrieve(r.ctx, []string{"HostSystem"},
		[]string{"config.network", "config.graphicsInfo", "config.option", "config.firewall", "runtime", "summary",
			"triggeredAlarmState"}, &hosts); err != nil {
		return err
	}
	if len(hosts) != 5 {
		return fmt.Errorf("%d hosts", len(hosts))
	}
	return v.Destroy(r.ctx)
}

// change makes the changes of a rollout on one host.
func (r *running) change(host string) error {
	if err := r.setOptions(host, "pfctx=0x08 pfcrx=0x08"); err != nil {
		return err
	}
	m, err := r.host(host).ConfigManager().OptionManager(r.ctx)
	if err != nil {
		return err
	}
	if err := m.Update(r.ctx,
		[]types.BaseOptionValue{&types.OptionValue{Key: "Net.PVRDMAVmknic", Value: "vmk1"}}); err != nil {
		return err
	}
	system := *r.hostProperties(host, "configManager").ConfigManager.FirewallSystem
	if _, err := methods.EnableRuleset(r.ctx, r.c, &types.EnableRuleset{This: system, Id: "pvrdma"}); err != nil {
		return err
	}
	r.enterMaintenance(host)
	r.restart(host)
	task, err := r.host(host).ExitMaintenanceMode(r.ctx, 0)
	if err != nil {
		return err
	}
	return task.Wait(r.ctx)
}

func TestManyClientsAtOnce(t *testing.T) {
	r := launch(t, "")
	var group sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 5 {
		host := fmt.Sprintf("esx%02d.lab", i+1)
		writer, reader := r.each(t), r.each(t)
		group.Go(func() { errs <- writer.change(host) })
		group.Go(func() {
			for range 2 {
				errs <- reader.readAll()
			}
		})
		group.Go(func() {
			r.control("PATCH", "/hosts/"+host, map[string]any{"alarm": "yellow"}, nil)
			r.control("PATCH", "/hosts/"+host,
				map[string]any{"alarm": "none",
					"traffic": map[string]any{"nic": map[string]any{"vmnic2": map[string]any{"tx_bytes": 1}}}}, nil)
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for i := range 5 {
		var report esxi.Report
		r.control("GET", fmt.Sprintf("/hosts/esx%02d.lab", i+1), nil, &report)
		if report.ModulesInEffect["nmlx5_core"] != "pfctx=0x08 pfcrx=0x08" || report.Maintenance {
			t.Errorf("%+v", report)
		}
	}
	var writes []front.Write
	r.control("GET", "/writes", nil, &writes)
	if len(writes) != 5*6 {
		t.Errorf("%d writes", len(writes))
	}
}
