package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func (r *running) dvs(name string) (*object.DistributedVirtualSwitch, types.VMwareDVSConfigInfo) {
	r.t.Helper()
	n, err := find.NewFinder(r.c.Client).Network(r.ctx, "/dc1/network/"+name)
	r.must(err)
	dvs := n.(*object.DistributedVirtualSwitch)
	var m mo.DistributedVirtualSwitch
	r.must(r.c.RetrieveOne(r.ctx, dvs.Reference(), []string{"config"}, &m))
	return dvs, *m.Config.(*types.VMwareDVSConfigInfo)
}

func (r *running) pvrdmaOpen(host string) bool {
	r.t.Helper()
	for _, s := range r.hostProperties(host, "config.firewall").Config.Firewall.Ruleset {
		if s.Key == "pvrdma" {
			return s.Enabled
		}
	}
	r.t.Fatal("no ruleset pvrdma")
	return false
}

func TestFirewallIsPerHost(t *testing.T) {
	r := launch(t, "")
	system := *r.hostProperties("esx01.lab", "configManager").ConfigManager.FirewallSystem
	_, err := methods.EnableRuleset(r.ctx, r.c, &types.EnableRuleset{This: system, Id: "pvrdma"})
	r.must(err)
	if !r.pvrdmaOpen("esx01.lab") || r.pvrdmaOpen("esx02.lab") {
		t.Error("the ruleset of one host is not its own")
	}
	spec := types.HostFirewallRulesetRulesetSpec{
		AllowedHosts: types.HostFirewallRulesetIpList{
			IpNetwork: []types.HostFirewallRulesetIpNetwork{{Network: "10.216.0.0", PrefixLength: 16}}}}
	_, err = methods.UpdateRuleset(r.ctx, r.c, &types.UpdateRuleset{This: system, Id: "pvrdma", Spec: spec})
	r.must(err)
	var m mo.HostFirewallSystem
	r.must(r.c.RetrieveOne(r.ctx, system, nil, &m))
	i := slices.IndexFunc(m.FirewallInfo.Ruleset, func(s types.HostFirewallRuleset) bool { return s.Key == "pvrdma" })
	if m.FirewallInfo.Ruleset[i].AllowedHosts.AllIp ||
		m.FirewallInfo.Ruleset[i].AllowedHosts.IpNetwork[0].Network != "10.216.0.0" {
		t.Errorf("allowed: %+v", m.FirewallInfo.Ruleset[i].AllowedHosts)
	}
	_, err = methods.DisableRuleset(r.ctx, r.c, &types.DisableRuleset{This: system, Id: "nope"})
	if _, ok := faultOf(err).(types.NotFound); !ok {
		t.Errorf("unknown ruleset: %v", err)
	}
}

func TestVmkernelAdapters(t *testing.T) {
	r := launch(t, "")
	managers := r.hostProperties("esx01.lab", "configManager").ConfigManager
	_, config := r.dvs("rdma")
	port := &types.DistributedVirtualSwitchPortConnection{
		SwitchUuid: config.Uuid, PortgroupKey: config.UplinkPortgroup[0].Value}
	added, err := methods.AddVirtualNic(r.ctx, r.c,
		&types.AddVirtualNic{This: *managers.NetworkSystem,
			Nic: types.HostVirtualNicSpec{DistributedVirtualPort: port, Mtu: 9000}})
	r.must(err)
	if added.Returnval != "vmk2" {
		t.Fatalf("added %s", added.Returnval)
	}
	_, err = methods.SelectVnicForNicType(r.ctx, r.c,
		&types.SelectVnicForNicType{This: *managers.VirtualNicManager, NicType: "vmotion", Device: "vmk2"})
	r.must(err)
	_, err = methods.UpdateVirtualNic(r.ctx, r.c, &types.UpdateVirtualNic{
		This: *managers.NetworkSystem, Device: "vmk2", Nic: types.HostVirtualNicSpec{Mtu: 4200}})
	r.must(err)
	nics := r.hostProperties("esx01.lab", "config.network", "config.virtualNicManagerInfo").Config
	if v := nics.Network.Vnic[2]; v.Spec.Mtu != 4200 || v.Spec.DistributedVirtualPort == nil {
		t.Errorf("adapter: %+v", v)
	}
	selected, err := methods.QueryNetConfig(r.ctx, r.c,
		&types.QueryNetConfig{This: *managers.VirtualNicManager, NicType: "vmotion"})
	r.must(err)
	if len(selected.Returnval.SelectedVnic) != 1 ||
		selected.Returnval.SelectedVnic[0] != "vmotion.key-vim.host.VirtualNic-vmk2" {
		t.Errorf("selected: %v", selected.Returnval.SelectedVnic)
	}
	for _, bad := range []types.HostVirtualNicSpec{{Mtu: 9001},
		{DistributedVirtualPort: &types.DistributedVirtualSwitchPortConnection{SwitchUuid: "nope"}}} {
		if _, err := methods.AddVirtualNic(r.ctx, r.c,
			&types.AddVirtualNic{This: *managers.NetworkSystem, Portgroup: "VM Network", Nic: bad}); err == nil {
			t.Errorf("accepted: %+v", bad)
		}
	}
	_, err = methods.RemoveVirtualNic(r.ctx, r.c,
		&types.RemoveVirtualNic{This: *managers.NetworkSystem, Device: "vmk2"})
	r.must(err)
	if n := len(r.hostProperties("esx01.lab", "config.network").Config.Network.Vnic); n != 2 {
		t.Errorf("%d adapters left", n)
	}
}

func TestSwitchKeepsItsMTUAndChecksTheVersion(t *testing.T) {
	r := launch(t, "")
	dvs, config := r.dvs("rdma")
	if len(config.Host) != 5 {
		t.Errorf("%d hosts", len(config.Host))
	}
	r.finish(
		dvs.Reconfigure(r.ctx, &types.VMwareDVSConfigSpec{
			DVSConfigSpec: types.DVSConfigSpec{ConfigVersion: config.ConfigVersion}, MaxMtu: 4200}))
	_, after := r.dvs("rdma")
	if after.MaxMtu != 4200 || after.ConfigVersion == config.ConfigVersion {
		t.Errorf("MTU %d, version %s", after.MaxMtu, after.ConfigVersion)
	}
	if proxy := r.hostProperties("esx01.lab", "config.network").Config.Network.ProxySwitch[0]; proxy.Mtu != 4200 {
		t.Errorf("the host sees %d", proxy.Mtu)
	}
	task, err := dvs.Reconfigure(r.ctx, &types.VMwareDVSConfigSpec{
		DVSConfigSpec: types.DVSConfigSpec{ConfigVersion: config.ConfigVersion}, MaxMtu: 9000})
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.ConcurrentAccess); !ok {
		t.Error("a stale version was accepted")
	}
	task, err = dvs.Reconfigure(r.ctx, &types.VMwareDVSConfigSpec{MaxMtu: 20000})
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.InvalidArgument); !ok {
		t.Error("an MTU of 20000 was accepted")
	}
}

func TestUplinksOfAHostCanChange(t *testing.T) {
	r := launch(t, "")
	dvs, _ := r.dvs("rdma")
	backing := &types.DistributedVirtualSwitchHostMemberPnicBacking{
		PnicSpec: []types.DistributedVirtualSwitchHostMemberPnicSpec{{PnicDevice: "vmnic1"}, {PnicDevice: "vmnic2"}}}
	spec := &types.VMwareDVSConfigSpec{}
	spec.Host = []types.DistributedVirtualSwitchHostMemberConfigSpec{
		{Operation: "edit", Host: r.host("esx01.lab").Reference(), Backing: backing}}
	r.finish(dvs.Reconfigure(r.ctx, spec))
	if proxy := r.hostProperties("esx01.lab", "config.network").Config.Network.ProxySwitch[0]; len(proxy.Pnic) != 2 {
		t.Errorf("uplinks: %v", proxy.Pnic)
	}
	backing.PnicSpec[0].PnicDevice = "vmnic9"
	task, err := dvs.Reconfigure(r.ctx, spec)
	r.must(err)
	if task.Wait(r.ctx) == nil {
		t.Error("a NIC that is not there was accepted")
	}
}

func TestRDMAByEsxcli(t *testing.T) {
	r := launch(t, "")
	const host = "esx01.lab"
	rows, _ := r.esxcli(host, "rdma device vmknic list")
	if len(rows) != 1 || rows[0].get("Vmknic") != "vmk1" {
		t.Errorf("vmknics: %v", rows)
	}
	grow := map[string]any{
		"traffic": map[string]any{"rdma": map[string]any{"vmrdma0": map[string]any{"tx_bytes": 5000, "rx_bytes": 7}}}}
	r.control("PATCH", "/hosts/"+host, grow, nil)
	r.control("PATCH", "/hosts/"+host, grow, nil)
	rows, _ = r.esxcli(host, "rdma device stats get", "device", "vmrdma0")
	if rows[0].get("BytesSent") != "10000" || rows[0].get("BytesReceived") != "14" {
		t.Errorf("traffic: %v", rows)
	}
	if rows, _ = r.esxcli(host, "network nic stats get", "nicname", "vmnic2"); rows[0].get("Bytessent") != "0" {
		t.Errorf("traffic of the NIC: %v", rows)
	}
	if status, _ := r.controlRaw("PATCH", "/hosts/"+host,
		map[string]any{
			"traffic": map[string]any{"rdma": map[string]any{"vmrdma7": map[string]any{}}}}); status != 400 {
		t.Errorf("traffic of a device that is not there: %d", status)
	}
}

func TestPFCIsInForceAfterTheReboot(t *testing.T) {
	r := launch(t, "")
	const host = "esx01.lab"
	r.must(r.setOptions(host, "pfctx=0x08 pfcrx=0x08"))
	pfc := func() string {
		rows, fault := r.esxcli(host, "network nic dcb status get", "nicname", "vmnic2")
		if fault != "" {
			t.Fatal(fault)
		}
		return rows[0].get("PFCEnabled") + " " + rows[0].get("PFCConfiguration")
	}
	if got := pfc(); got != "false 0 0 0 0 0 0 0 0" {
		t.Errorf("before: %s", got)
	}
	r.enterMaintenance(host)
	r.restart(host)
	if got := pfc(); got != "true 0 0 0 1 0 0 0 0" {
		t.Errorf("after: %s", got)
	}
	if _, fault := r.esxcli(host, "network nic dcb status get", "nicname", "vmnic0"); !strings.Contains(
		fault, "not supported") {
		t.Errorf("a NIC without DCB: %q", fault)
	}
}

func TestConfigTargetOffersVGPUs(t *testing.T) {
	r := launch(t, gpuHost)
	var cluster mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, *r.hostProperties("esx01.lab", "parent").Parent, []string{"environmentBrowser"},
		&cluster))
	host := r.host("esx01.lab").Reference()
	got, err := methods.QueryConfigTarget(r.ctx, r.c,
		&types.QueryConfigTarget{This: *cluster.EnvironmentBrowser, Host: &host})
	r.must(err)
	if !slices.ContainsFunc(got.Returnval.VgpuProfileInfo, func(p types.VirtualMachineVgpuProfileInfo) bool {
		return p.ProfileName == "grid_t4-16c" && p.FbSizeInGib == 16
	}) {
		t.Errorf("profiles: %+v", got.Returnval.VgpuProfileInfo)
	}
}

func TestConfigOptionLimitsDevicesByHardware(t *testing.T) {
	r := launch(t, gpuHost)
	var cluster mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, *r.hostProperties("esx01.lab", "parent").Parent, []string{"environmentBrowser"},
		&cluster))
	for key, most := range map[string]int32{"vmx-13": 1, "vmx-18": 4, "vmx-21": 16} {
		spec := &types.EnvironmentBrowserConfigOptionQuerySpec{Key: key, GuestId: []string{"otherGuest64"}}
		got, err := methods.QueryConfigOptionEx(r.ctx, r.c,
			&types.QueryConfigOptionEx{This: *cluster.EnvironmentBrowser, Spec: spec})
		r.must(err)
		for _, one := range got.Returnval.HardwareOptions.VirtualDeviceOption {
			if passed, ok := one.(*types.VirtualPCIPassthroughOption); ok {
				backing := passed.BackingOption[0].(*types.VirtualPCIPassthroughVmiopBackingOption)
				if got.Returnval.Version != key || backing.MaxInstances != most {
					t.Errorf("%s: %s, %d vGPUs", key, got.Returnval.Version, backing.MaxInstances)
				}
			}
		}
		if len(got.Returnval.GuestOSDescriptor) != 1 {
			t.Errorf("%s: %d guests", key, len(got.Returnval.GuestOSDescriptor))
		}
	}
}

func TestACardWithoutDCBAndOneThatObeysTheSwitch(t *testing.T) {
	r := launch(t, strings.Replace(string(labDescription(t)), "host_defaults:\n  hardware: t4_cx5\n", `hardware:
  cards:
    sockets: 1
    cores_per_socket: 8
    mhz: 2400
    memory_gb: 64
    nics:
      - {device: vmnic1, pci: "0000:18:00.0", driver: nmlx5_core, name: A, speed_mb: 25000, rdma: vmrdma0,
         no_dcb: true}
      - {device: vmnic2, pci: "0000:5e:00.0", driver: nmlx5_core, name: B, speed_mb: 100000, rdma: vmrdma1,
         dcbx: {mode: ieee, willing: true, switch: [3, 5]}}
host_defaults:
  hardware: cards
`, 1))
	const host = "esx01.lab"
	if _, fault := r.esxcli(host, "network nic dcb status get", "nicname", "vmnic1"); !strings.Contains(
		fault, "DCB is not supported") {
		t.Errorf("a card without DCB: %q", fault)
	}
	rows, fault := r.esxcli(host, "network nic dcb status get", "nicname", "vmnic2")
	if fault != "" {
		t.Fatal(fault)
	}
	got := rows[0].get("Mode") + "|" + rows[0].get("PFCConfiguration") + "|" + rows[0].get("WillingBitInETSConfigTLV")
	if got != "3 - IEEE Mode|0 0 0 1 0 1 0 0|1" {
		t.Errorf("a willing card: %s", got)
	}
}
