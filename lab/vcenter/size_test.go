package main

import (
	"fmt"
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// sized returns a data centre with a given number of hosts, each with a worker and three other virtual machines.
func sized(hosts int) string {
	return fmt.Sprintf(`
datastores: [shared]
vcenter_options: {vgpu.hotmigrate.enabled: true}
switches: [{name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vm, vlan: 216}]}]
host_defaults:
  hardware: t4_cx5
  vmotion_seconds: 0.2
  graphics: {default: sharedDirect}
  vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]
clusters: [{name: gpu, hosts: [{name: "esx%%04d.lab", count: %[1]d}]}]
vms:
  - {name: "worker%%04d", count: %[1]d, host: "esx%%04d.lab", powered_on: true, memory_mb: 16384, vgpu: grid_t4-8c,
     pvrdma: rdma-vm}
  - {name: "a%%04d", count: %[1]d, host: "esx%%04d.lab", powered_on: true, memory_mb: 4096}
  - {name: "b%%04d", count: %[1]d, host: "esx%%04d.lab", powered_on: true, memory_mb: 4096}
  - {name: "c%%04d", count: %[1]d, host: "esx%%04d.lab", memory_mb: 4096}
`, hosts)
}

// Hosts do not copy their individual parts from vcsim's model of a host.
func TestEachHostOfManyIsWhole(t *testing.T) {
	r := launch(t, sized(3))
	for _, name := range []string{"esx0001.lab", "esx0002.lab", "esx0003.lab"} {
		h := r.hostProperties(name, "config", "configManager.certificateManager")
		if len(h.Config.Certificate) == 0 || len(h.Config.StorageDevice.ScsiLun) == 0 ||
			len(h.Config.Network.Pnic) != 3 || len(h.Config.Firewall.Ruleset) < 40 ||
			len(h.Config.Service.Service) < 8 || len(h.Config.VirtualNicManagerInfo.NetConfig) == 0 {
			t.Errorf("%s lacks something: %+v", name, h.Config)
		}
		var certificates mo.HostCertificateManager
		r.must(r.c.RetrieveOne(r.ctx, *h.ConfigManager.CertificateManager, []string{"certificateInfo"}, &certificates))
		if certificates.CertificateInfo.NotAfter == nil {
			t.Errorf("%s has no certificate: %+v", name, certificates)
		}
	}
}

// The cluster reports which hosts support a version of virtual hardware.
func TestAllHostsOfAClusterKnowTheVersionsOfHardware(t *testing.T) {
	r := launch(t, sized(3))
	var cluster mo.ClusterComputeResource
	parent := *r.hostProperties("esx0001.lab", "parent").Parent
	r.must(r.c.RetrieveOne(r.ctx, parent, []string{"host", "environmentBrowser"}, &cluster))
	told, err := methods.QueryConfigOptionDescriptor(r.ctx, r.c,
		&types.QueryConfigOptionDescriptor{This: *cluster.EnvironmentBrowser})
	r.must(err)
	if len(told.Returnval) == 0 || len(cluster.Host) != 3 {
		t.Fatalf("%d versions, %d hosts", len(told.Returnval), len(cluster.Host))
	}
	for _, one := range told.Returnval {
		if len(one.Host) != 3 {
			t.Errorf("%s: %v", one.Key, one.Host)
		}
	}
}
