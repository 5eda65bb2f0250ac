package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Differences between vcsim and a vCenter: docs/vcsim.md lists them.

func TestSearchByUUIDGoesOnAfterSomebodyAskedForTypes(t *testing.T) {
	r := launch(t, twoCards)
	_, err := esx.NewExecutor(r.ctx, r.c.Client, r.host("esx01.lab"))
	r.must(err)
	vm := r.machineProperties("plain", "config.instanceUuid")
	index := object.NewSearchIndex(r.c.Client)
	for range 2 {
		found, err := index.FindByUuid(r.ctx, nil, vm.Config.InstanceUuid, true, types.NewBool(true))
		if err != nil || found == nil || found.Reference() != r.vm("plain").Reference() {
			t.Fatalf("found %v, %v", found, err)
		}
	}
	host := r.hostProperties("esx01.lab", "summary.hardware.uuid").Summary.Hardware.Uuid
	if found, err := index.FindByUuid(r.ctx, nil, host, false, nil); err != nil || found == nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestARenameIsWhole(t *testing.T) {
	r := launch(t, twoCards)
	vm := r.vm("plain")
	r.finish(vm.Rename(r.ctx, "other"))
	found := r.machineProperties("other", "config.name", "summary.config.name")
	if found.Config.Name != "other" || found.Summary.Config.Name != "other" {
		t.Errorf("%q, %q", found.Config.Name, found.Summary.Config.Name)
	}
	task, err := vm.Rename(r.ctx, "w1")
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.DuplicateName); !ok {
		t.Error("two machines have one name")
	}
}

func TestANewSwitchHasTheHostsThatItNames(t *testing.T) {
	r := launch(t, strings.Replace(twoCards, "uplinks: [vmnic2]", "uplinks: [vmnic1]", 1))
	folders, err := find.NewFinder(r.c.Client).DefaultDatacenter(r.ctx)
	r.must(err)
	all, err := folders.Folders(r.ctx)
	r.must(err)
	host := r.host("esx02.lab").Reference()
	backing := &types.DistributedVirtualSwitchHostMemberPnicBacking{
		PnicSpec: []types.DistributedVirtualSwitchHostMemberPnicSpec{{PnicDevice: "vmnic2"}}}
	task, err := all.NetworkFolder.CreateDVS(r.ctx, types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{
		DVSConfigSpec: types.DVSConfigSpec{Name: "new", Host: []types.DistributedVirtualSwitchHostMemberConfigSpec{
			{Operation: "add", Host: host, Backing: backing}}}}})
	r.must(err)
	info, err := task.WaitForResult(r.ctx)
	r.must(err)
	var made mo.DistributedVirtualSwitch
	r.must(r.c.RetrieveOne(r.ctx, info.Result.(types.ManagedObjectReference), nil, &made))
	members := made.Config.GetDVSConfigInfo().Host
	if len(members) != 1 || *members[0].Config.Host != host || len(made.Summary.HostMember) != 1 {
		t.Errorf("its hosts are %v", members)
	}
	created := info.Result.(types.ManagedObjectReference)
	if created.Type != "VmwareDistributedVirtualSwitch" || made.Self != created {
		t.Errorf("it is %v, then %v", created, made.Self)
	}
	seen, err := view.NewManager(r.c.Client).CreateContainerView(r.ctx, all.NetworkFolder.Reference(),
		[]string{created.Type}, true)
	r.must(err)
	var switches []mo.VmwareDistributedVirtualSwitch
	r.must(seen.Retrieve(r.ctx, []string{created.Type}, []string{"name"}, &switches))
	isIt := func(one mo.VmwareDistributedVirtualSwitch) bool { return one.Self == created }
	if !slices.ContainsFunc(switches, isIt) {
		t.Errorf("a view of switches has %v", switches)
	}
	uuid := made.Uuid
	if len(uuid) != 47 || uuid[2] != ' ' || uuid[23] != '-' || made.Config.GetDVSConfigInfo().Uuid != uuid {
		t.Errorf("its uuid is %q", made.Uuid)
	}
	r.cardOn(made)
}

func TestTheUplinkGroupOfANewSwitchIsOneFromTheBeginning(t *testing.T) {
	simulator.TaskDelay.MethodDelay = map[string]int{"AddDVPortgroup": 300}
	defer func() { simulator.TaskDelay.MethodDelay = nil }()
	r := launch(t, twoCards)
	centre, err := find.NewFinder(r.c.Client).DefaultDatacenter(r.ctx)
	r.must(err)
	all, err := centre.Folders(r.ctx)
	r.must(err)
	task, err := all.NetworkFolder.CreateDVS(r.ctx, types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{
		DVSConfigSpec: types.DVSConfigSpec{Name: "new"}}})
	r.must(err)
	info, err := task.WaitForResult(r.ctx)
	r.must(err)
	var made mo.DistributedVirtualSwitch
	r.must(r.c.RetrieveOne(r.ctx, info.Result.(types.ManagedObjectReference), nil, &made))
	if groups := made.Config.GetDVSConfigInfo().UplinkPortgroup; len(groups) != 1 || groups[0] != made.Portgroup[0] {
		t.Errorf("its uplink port groups are %v", groups)
	}
}

// cardOn adds a PVRDMA card on a switch to a virtual machine on the only host of the switch.
func (r *running) cardOn(made mo.DistributedVirtualSwitch) {
	r.t.Helper()
	task, err := object.NewDistributedVirtualSwitch(r.c.Client, made.Self).AddPortgroup(r.ctx,
		[]types.DVPortgroupConfigSpec{{Name: "new-vm", Type: "earlyBinding", NumPorts: 8}})
	r.finish(task, err)
	group := r.group(object.NewDistributedVirtualSwitch(r.c.Client, made.Self), "new-vm")
	vm := r.clone("plain", "copy", types.VirtualMachineCloneSpec{})
	card := &types.VirtualVmxnet3Vrdma{DeviceProtocol: "rocev2"}
	card.Backing = &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
		Port: types.DistributedVirtualSwitchPortConnection{SwitchUuid: made.Uuid, PortgroupKey: group.Key}}
	change := []types.BaseVirtualDeviceConfigSpec{&types.VirtualDeviceConfigSpec{Operation: "add", Device: card}}
	r.finish(vm.Reconfigure(r.ctx, types.VirtualMachineConfigSpec{DeviceChange: change}))
	task, err = r.vm("plain").Reconfigure(r.ctx, types.VirtualMachineConfigSpec{DeviceChange: change})
	r.must(err)
	if _, ok := faultOf(task.Wait(r.ctx)).(*types.InvalidArgument); !ok {
		r.t.Error("a machine on a host that is not on the switch has a card there")
	}
}

func TestPortGroupsOfOneNameOnTwoHostsAreOneNetwork(t *testing.T) {
	r := launch(t, twoCards)
	spec := types.HostPortGroupSpec{Name: "shared", VswitchName: "vSwitch0"}
	for _, name := range []string{"esx01.lab", "esx02.lab"} {
		network, err := r.host(name).ConfigManager().NetworkSystem(r.ctx)
		r.must(err)
		r.must(network.AddPortGroup(r.ctx, spec))
		if _, ok := faultOf(network.AddPortGroup(r.ctx, spec)).(types.AlreadyExists); !ok {
			t.Errorf("%s has it twice", name)
		}
	}
	finder := find.NewFinder(r.c.Client)
	for i, name := range []string{"esx01.lab", "esx02.lab"} {
		if _, err := finder.Network(r.ctx, "/dc1/network/shared"); err != nil {
			t.Errorf("removed %d: %v", i, err)
		}
		network, err := r.host(name).ConfigManager().NetworkSystem(r.ctx)
		r.must(err)
		r.must(network.RemovePortGroup(r.ctx, "shared"))
		for _, g := range r.hostProperties(name, "config.network").Config.Network.Portgroup {
			if g.Spec.Name == "shared" {
				t.Errorf("%s has it still", name)
			}
		}
	}
	if _, err := finder.Network(r.ctx, "/dc1/network/shared"); err == nil {
		t.Error("the network stays")
	}
}
