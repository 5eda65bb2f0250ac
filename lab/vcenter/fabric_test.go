package main

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func (r *running) group(dvs *object.DistributedVirtualSwitch, name string) mo.DistributedVirtualPortgroup {
	r.t.Helper()
	var owner mo.DistributedVirtualSwitch
	r.must(r.c.RetrieveOne(r.ctx, dvs.Reference(), []string{"portgroup"}, &owner))
	for _, pg := range owner.Portgroup {
		var m mo.DistributedVirtualPortgroup
		r.must(r.c.RetrieveOne(r.ctx, pg, []string{"name", "config", "key"}, &m))
		if m.Name == name {
			return m
		}
	}
	r.t.Fatalf("no port group %s", name)
	return mo.DistributedVirtualPortgroup{}
}

func TestPortGroupsKeepWhatIsNotChanged(t *testing.T) {
	r := launch(t, "")
	dvs, _ := r.dvs("rdma")
	before := r.group(dvs, "rdma-vm")
	spec := types.DVPortgroupConfigSpec{ConfigVersion: before.Config.ConfigVersion,
		LogicalSwitchUuid: "segment-1", BackingType: string(types.DistributedVirtualPortgroupBackingTypeNsx),
		DefaultPortConfig: &types.VMwareDVSPortSetting{
			Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: 217}}}
	pg := object.NewDistributedVirtualPortgroup(r.c.Client, before.Self)
	r.finish(pg.Reconfigure(r.ctx, spec))
	after := r.group(dvs, "rdma-vm")
	setting := after.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting)
	if setting.Vlan.(*types.VmwareDistributedVirtualSwitchVlanIdSpec).VlanId != 217 ||
		setting.UplinkTeamingPolicy == nil || after.Config.NumPorts != before.Config.NumPorts ||
		after.Config.LogicalSwitchUuid != spec.LogicalSwitchUuid || after.Config.BackingType != spec.BackingType {
		t.Errorf("after: %+v", after.Config)
	}
	task, err := pg.Reconfigure(r.ctx, spec)
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.ConcurrentAccess); !ok {
		t.Error("a stale version was accepted")
	}
}

func TestASwitchInUseStaysAndAnUnusedOneGoesEverywhere(t *testing.T) {
	r := launch(t, "")
	dvs, _ := r.dvs("rdma")
	destroy := func(of types.ManagedObjectReference) error {
		task, err := object.NewCommon(r.c.Client, of).Destroy(r.ctx)
		r.must(err)
		return task.Wait(r.ctx)
	}
	if _, ok := faultOf(destroy(dvs.Reference())).(*types.ResourceInUse); !ok {
		t.Error("a switch with vmkernel adapters was removed")
	}
	for _, name := range []string{"esx01.lab", "esx02.lab", "esx03.lab", "esx04.lab", "esx05.lab"} {
		system := *r.hostProperties(name, "configManager").ConfigManager.NetworkSystem
		_, err := methods.RemoveVirtualNic(r.ctx, r.c, &types.RemoveVirtualNic{This: system, Device: "vmk1"})
		r.must(err)
	}
	r.must(destroy(r.group(dvs, "rdma-vm").Self))
	r.must(destroy(dvs.Reference()))
	host := r.hostProperties("esx01.lab", "config.network", "network", "parent")
	if len(host.Config.Network.ProxySwitch) != 0 {
		t.Errorf("the host still has %+v", host.Config.Network.ProxySwitch)
	}
	var cluster mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, *host.Parent, []string{"network"}, &cluster))
	for _, n := range append(host.Network, cluster.Network...) {
		if n.Type == "DistributedVirtualPortgroup" {
			t.Errorf("still there: %v", n)
		}
	}
}
