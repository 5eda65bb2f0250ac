package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/cns"
	"github.com/vmware/govmomi/crypto"
	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/lookup"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/pbm"
	pbmtypes "github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/ssoadmin"
	"github.com/vmware/govmomi/sts"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vslm"
)

// Behaviour on which clients of other projects rely.

func TestARefusedMoveHasTheFaultOfTheAPI(t *testing.T) {
	r := launch(t, vgpuHosts)
	fault, ok := faultOf(r.moveTo("w1", "esx03.lab")).(*types.VMotionNotSupported)
	if !ok || fault.FaultCause == nil {
		t.Fatalf("the fault is %T", fault)
	}
	if _, ok := fault.FaultCause.Fault.(*types.SystemError); !ok {
		t.Errorf("its cause is %T", fault.FaultCause.Fault)
	}
}

func (r *running) cards(vm string) []*types.VirtualEthernetCard {
	r.t.Helper()
	devices, err := r.vm(vm).Device(r.ctx)
	r.must(err)
	var list []*types.VirtualEthernetCard
	for _, d := range devices.SelectByType((*types.VirtualEthernetCard)(nil)) {
		list = append(list, d.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard())
	}
	return list
}

func (r *running) machineProperties(vm string, paths ...string) mo.VirtualMachine {
	r.t.Helper()
	var found mo.VirtualMachine
	r.must(r.c.RetrieveOne(r.ctx, r.vm(vm).Reference(), paths, &found))
	return found
}

const twoCards = `
switches: [{name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vm, vlan: 216}]}]
host_defaults: {hardware: t4_cx5}
clusters: [{name: gpu, hosts: [{name: "esx%02d.lab", count: 2}]}]
vms:
  - {name: w1, host: esx01.lab, powered_on: true, pvrdma: rdma-vm}
  - {name: plain, host: esx01.lab, memory_mb: 2048}
`

func TestEachCardOfAGuestHasTheKeyOfItsDevice(t *testing.T) {
	r := launch(t, twoCards)
	r.control("PUT", "/vms/w1/guest", map[string]string{"hostname": "w1", "address": "10.0.0.1"}, nil)
	cards, nets := r.cards("w1"), r.machineProperties("w1", "guest.net").Guest.Net
	if len(cards) != 2 || len(nets) != 2 {
		t.Fatalf("%d cards, %d in the guest", len(cards), len(nets))
	}
	for i, label := range []string{"Network adapter 1", "Network adapter 2"} {
		if cards[i].Key != int32(4000+i) || cards[i].DeviceInfo.GetDescription().Label != label {
			t.Errorf("card %d has key %d, label %q", i, cards[i].Key, cards[i].DeviceInfo.GetDescription().Label)
		}
		if nets[i].DeviceConfigId != cards[i].Key || nets[i].MacAddress != cards[i].MacAddress {
			t.Errorf("the guest says key %d, address %s", nets[i].DeviceConfigId, nets[i].MacAddress)
		}
	}
	if !slices.Equal(nets[0].IpAddress, []string{"10.0.0.1"}) || len(nets[1].IpAddress) != 0 {
		t.Errorf("addresses %v and %v", nets[0].IpAddress, nets[1].IpAddress)
	}
}

// vcsim's process crashes for a network card on a network that does not exist.
func TestACardOnNoNetworkIsRefused(t *testing.T) {
	r := launch(t, twoCards)
	for _, name := range []string{"no such network", ""} {
		card := r.cards("plain")[0]
		card.Backing = &types.VirtualEthernetCardNetworkBackingInfo{
			VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: name}}
		change := []types.BaseVirtualDeviceConfigSpec{&types.VirtualDeviceConfigSpec{
			Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: card}}
		task, err := r.vm("plain").Reconfigure(r.ctx, types.VirtualMachineConfigSpec{DeviceChange: change})
		r.must(err)
		if _, ok := faultOf(task.Wait(r.ctx)).(*types.InvalidDeviceBacking); !ok {
			t.Errorf("%q is taken", name)
		}
	}
	if name := r.machineProperties("plain", "name").Name; name != "plain" {
		t.Errorf("it is called %q", name)
	}
}

func TestControllersListTheDevicesThatTheyHave(t *testing.T) {
	r := launch(t, twoCards)
	r.clone("plain", "copy", types.VirtualMachineCloneSpec{})
	card := r.cards("plain")[0]
	remove := &types.VirtualDeviceConfigSpec{Operation: "remove", Device: card}
	r.finish(r.vm("plain").Reconfigure(r.ctx, types.VirtualMachineConfigSpec{
		DeviceChange: []types.BaseVirtualDeviceConfigSpec{remove}}))
	for _, vm := range []string{"w1", "plain", "copy"} {
		devices, err := r.vm(vm).Device(r.ctx)
		r.must(err)
		held := map[int32][]int32{}
		for _, d := range devices {
			key := d.GetVirtualDevice().ControllerKey
			held[key] = append(held[key], d.GetVirtualDevice().Key)
		}
		for _, d := range devices.SelectByType((*types.VirtualController)(nil)) {
			c := d.(types.BaseVirtualController).GetVirtualController()
			slices.Sort(c.Device)
			slices.Sort(held[c.Key])
			if !slices.Equal(c.Device, held[c.Key]) {
				t.Errorf("%s: controller %d lists %v and has %v", vm, c.Key, c.Device, held[c.Key])
			}
		}
	}
}

func TestAMachineThatRanBeforeIsCustomised(t *testing.T) {
	r := launch(t, twoCards)
	vm := r.vm("plain")
	r.finish(vm.PowerOn(r.ctx))
	r.finish(vm.PowerOff(r.ctx))
	r.finish(vm.Customize(r.ctx, types.CustomizationSpec{
		Identity: &types.CustomizationLinuxPrep{HostName: &types.CustomizationFixedName{Name: "node"}},
		NicSettingMap: []types.CustomizationAdapterMapping{{Adapter: types.CustomizationIPSettings{
			Ip: &types.CustomizationFixedIp{IpAddress: "10.0.0.9"}}}}}))
	r.finish(vm.PowerOn(r.ctx))
	if name := r.machineProperties("plain", "guest").Guest.HostName; name != "node" {
		t.Errorf("its name is %q", name)
	}
}

// clone creates a clone on esx02.lab.
func (r *running) clone(source, name string, spec types.VirtualMachineCloneSpec) *object.VirtualMachine {
	r.t.Helper()
	host := r.host("esx02.lab")
	pool, err := host.ResourcePool(r.ctx)
	r.must(err)
	ref, at := pool.Reference(), host.Reference()
	spec.Location.Pool, spec.Location.Host = &ref, &at
	folder, err := find.NewFinder(r.c.Client).Folder(r.ctx, "/dc1/vm")
	r.must(err)
	r.finish(r.vm(source).Clone(r.ctx, folder, name, spec))
	return r.vm(name)
}

func TestACloneKeepsTheManualAddressThatItIsGiven(t *testing.T) {
	r := launch(t, twoCards)
	const address = "00:50:56:3f:00:42"
	card := r.cards("plain")[0]
	change := &types.VirtualVmxnet3{}
	change.Key, change.Backing, change.ControllerKey, change.UnitNumber = card.Key, card.Backing, card.ControllerKey,
		card.UnitNumber
	change.AddressType, change.MacAddress = string(types.VirtualEthernetCardMacTypeManual), address
	spec := types.VirtualMachineCloneSpec{}
	spec.Location.DeviceChange = []types.BaseVirtualDeviceConfigSpec{&types.VirtualDeviceConfigSpec{
		Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: change}}
	r.clone("plain", "copy", spec)
	if mac := r.cards("copy")[0].MacAddress; mac != address {
		t.Errorf("its address is %s", mac)
	}
}

func TestAStartedCloneHasAllItsChanges(t *testing.T) {
	r := launch(t, twoCards)
	r.clone("plain", "copy", types.VirtualMachineCloneSpec{PowerOn: true, Config: &types.VirtualMachineConfigSpec{
		Annotation: "a note", MemoryReservationLockedToMax: types.NewBool(true), MemoryMB: 4096,
		MemoryAllocation:   &types.ResourceAllocationInfo{Reservation: types.NewInt64(4096)},
		LatencySensitivity: &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelHigh}}})
	vm := r.machineProperties("copy", "config", "runtime.powerState")
	locked := vm.Config.MemoryReservationLockedToMax
	if vm.Config.Annotation != "a note" || locked == nil || !*locked || vm.Config.LatencySensitivity.Level != "high" ||
		vm.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("%q, locked %v, latency %v, %s", vm.Config.Annotation, locked, vm.Config.LatencySensitivity,
			vm.Runtime.PowerState)
	}
}

func TestACloneHasTheAttributesOfItsSource(t *testing.T) {
	r := launch(t, twoCards)
	fields, err := object.GetCustomFieldsManager(r.c.Client)
	r.must(err)
	field, err := fields.Add(r.ctx, "owner", "VirtualMachine", nil, nil)
	r.must(err)
	r.must(fields.Set(r.ctx, r.vm("plain").Reference(), field.Key, "team a"))
	r.clone("plain", "copy", types.VirtualMachineCloneSpec{})
	vm := r.machineProperties("copy", "customValue", "summary.customValue")
	for _, list := range [][]types.BaseCustomFieldValue{vm.CustomValue, vm.Summary.CustomValue} {
		if len(list) != 1 || list[0].(*types.CustomFieldStringValue).Value != "team a" {
			t.Errorf("its attributes are %v", list)
		}
	}
}

func TestAChangedAttributeIsAnEventWithItsUser(t *testing.T) {
	r := launch(t, twoCards)
	fields, err := object.GetCustomFieldsManager(r.c.Client)
	r.must(err)
	field, err := fields.Add(r.ctx, "owner", "VirtualMachine", nil, nil)
	r.must(err)
	vm := r.vm("plain").Reference()
	r.must(fields.Set(r.ctx, vm, field.Key, "team a"))
	on := &types.EventFilterSpecByEntity{Entity: vm, Recursion: types.EventFilterSpecRecursionOptionSelf}
	filter := types.EventFilterSpec{Entity: on, EventTypeId: []string{"CustomFieldValueChangedEvent"}}
	found, err := event.NewManager(r.c.Client).QueryEvents(r.ctx, filter)
	r.must(err)
	if len(found) != 1 {
		t.Fatalf("%d events", len(found))
	}
	change := found[0].(*types.CustomFieldValueChangedEvent)
	if change.Name != "owner" || change.Value != "team a" || change.UserName == "" || change.Entity.Entity != vm {
		t.Errorf("the event is %+v", change)
	}
}

func TestReconfigurationsQueueAndAreOneTaskEach(t *testing.T) {
	r := launch(t, twoCards)
	vm := r.vm("plain")
	var tasks []*object.Task
	for range 5 {
		task, err := vm.Reconfigure(r.ctx, types.VirtualMachineConfigSpec{Annotation: "again"})
		r.must(err)
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		r.must(task.Wait(r.ctx))
	}
	var manager mo.TaskManager
	r.must(r.c.RetrieveOne(r.ctx, *r.c.ServiceContent.TaskManager, []string{"recentTask"}, &manager))
	for _, list := range [][]types.ManagedObjectReference{manager.RecentTask,
		r.machineProperties("plain", "recentTask").RecentTask} {
		count := 0
		for _, ref := range list {
			var shown mo.Task
			r.must(r.c.RetrieveOne(r.ctx, ref, []string{"info.descriptionId"}, &shown))
			if strings.EqualFold(shown.Info.DescriptionId, "VirtualMachine.reconfigVm") ||
				shown.Info.DescriptionId == "VirtualMachine.reconfigure" {
				count++
			}
		}
		if count != len(tasks) {
			t.Errorf("%d tasks are shown for %d reconfigurations", count, len(tasks))
		}
	}
}

func TestAHostOffersTheNICsThatHaveVirtualFunctions(t *testing.T) {
	r := launch(t, strings.Replace(twoCards, "hardware: t4_cx5",
		`hardware: t4_cx5, module_options: {nmlx5_core: "max_vfs=4"}`, 1))
	var host mo.HostSystem
	r.must(r.c.RetrieveOne(r.ctx, r.host("esx01.lab").Reference(), []string{"parent"}, &host))
	var cluster mo.ClusterComputeResource
	r.must(r.c.RetrieveOne(r.ctx, *host.Parent, []string{"environmentBrowser"}, &cluster))
	res, err := methods.QueryConfigTarget(r.ctx, r.c, &types.QueryConfigTarget{This: *cluster.EnvironmentBrowser})
	r.must(err)
	if list := res.Returnval.Sriov; len(list) == 0 || list[0].Pnic == "" || list[0].SystemId == "" {
		t.Errorf("it offers %+v", list)
	}
}

func TestTheEndpointsOfVMwaresSimulatorAnswer(t *testing.T) {
	r := launch(t, twoCards)
	_, err := lookup.NewClient(r.ctx, r.c.Client)
	r.must(err)
	policies, err := pbm.NewClient(r.ctx, r.c.Client)
	r.must(err)
	storage := string(pbmtypes.PbmProfileResourceTypeEnumSTORAGE)
	found, err := policies.QueryProfile(r.ctx, pbmtypes.PbmProfileResourceType{ResourceType: storage}, "")
	if err != nil || len(found) == 0 {
		t.Errorf("storage policies: %v, %v", found, err)
	}
	_, errSSO := ssoadmin.NewClient(r.ctx, r.c.Client)
	_, errToken := sts.NewClient(r.ctx, r.c.Client)
	_, errDisks := vslm.NewClient(r.ctx, r.c.Client)
	_, errVolumes := cns.NewClient(r.ctx, r.c.Client)
	r.must(errors.Join(errSSO, errToken, errDisks, errVolumes))
	_, err = crypto.NewManagerKmip(r.c.Client).ListKmipServers(r.ctx, nil)
	r.must(err)
}

func TestTheCertificateAuthorityShowsItsCertificate(t *testing.T) {
	r := launch(t, twoCards)
	c := rest.NewClient(r.c.Client)
	r.must(c.Login(r.ctx, r.url().User))
	var text string
	r.must(c.Do(r.ctx, c.Resource("/vcenter/certificate-authority/get-root").Request(http.MethodGet), &text))
	if !strings.Contains(text, "BEGIN CERTIFICATE") {
		t.Errorf("it shows %q", text)
	}
}
