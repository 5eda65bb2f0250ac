// Command capv clones, starts, compares and destroys machines with the code of Kubernetes' Cluster API provider for
// vSphere, finds them as nodes with that of its cloud provider, and prints the result of each step.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/deprecated/v1beta1/patch"

	infrav1 "sigs.k8s.io/cluster-api-provider-vsphere/apis/v1beta1"
	capv "sigs.k8s.io/cluster-api-provider-vsphere/pkg/context"
	"sigs.k8s.io/cluster-api-provider-vsphere/pkg/context/fake"
	"sigs.k8s.io/cluster-api-provider-vsphere/pkg/services/govmomi"
	"sigs.k8s.io/cluster-api-provider-vsphere/pkg/session"
)

const (
	group        = "workers"
	patience     = 60 * time.Second
	nvidia, t4   = 0x10de, 0x1eb8
	memory, disk = 8192, 40
)

// machine is one machine of the provider: its GPU is a part of a card or a whole card.
type machine struct {
	name, uid, cluster string
	gpu                infrav1.PCIDeviceSpec
	backing            types.BaseVirtualDeviceBackingInfo
}

func machines() []machine {
	vendor, device := int32(nvidia), int32(t4)
	allowed := []types.VirtualPCIPassthroughAllowedDevice{{VendorId: vendor, DeviceId: device}}
	const profile = "grid_t4-16c"
	return []machine{
		{"vgpu", "7f8a4c2e-5a0b-4c1d-9e6f-0123456789ab", "gpu", infrav1.PCIDeviceSpec{VGPUProfile: profile},
			&types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: profile}},
		{"directpath", "7f8a4c2e-5a0b-4c1d-9e6f-0123456789ac", "tied",
			infrav1.PCIDeviceSpec{VendorID: &vendor, DeviceID: &device},
			&types.VirtualPCIPassthroughDynamicBackingInfo{AllowedDevice: allowed}},
	}
}

// client reconciles one machine.
type client struct {
	machine
	ctx     context.Context
	service govmomi.VMService
	vm      *capv.VMContext
	tag     string
}

func main() {
	ctx := context.Background()
	params := session.NewParams().WithServer(os.Getenv("SERVER")).WithDatacenter("dc1").
		WithUserInfo(os.Getenv("ACCOUNT"), os.Getenv("PASSWORD"))
	its, err := session.GetOrCreate(ctx, params)
	tell("log in", err)
	tag, err := tagged(ctx, its)
	tell("create a tag", err)
	tell("make a region and zones", zoned(ctx, its))
	nodes := provider()
	for _, m := range machines() {
		c := &client{machine: m, ctx: ctx, tag: tag}
		tell(m.name+": create its group", grouped(ctx, its, m.cluster))
		tell(m.name+": describe it", c.describe(its))
		tell(m.name+": clone, configure and start it", c.reconcile())
		before, err := c.compared()
		tell(m.name+": compare it with its description", err)
		tell(m.name+": reconcile it again", c.reconcile())
		after, err := c.compared()
		if err == nil && before != after {
			err = fmt.Errorf("change version %s became %s", before, after)
		}
		tell(m.name+": nothing has changed", err)
		uuid, err := c.node(nodes)
		tell(m.name+": find it as a node, with its region and zone", err)
		tell(m.name+": shut its guest down, and destroy it", c.destroy())
		tell(m.name+": its node is gone", gone(ctx, nodes, uuid))
	}
}

// tell prints the result of a step, and ends the program if it failed.
func tell(step string, err error) {
	if err != nil {
		fmt.Printf("failed: %s: %v\n", step, err)
		os.Exit(1)
	}
	fmt.Println(step)
}

func tagged(ctx context.Context, its *session.Session) (string, error) {
	category, err := its.TagManager.CreateCategory(ctx, &tags.Category{
		Name: "kubernetes", Cardinality: "MULTIPLE", AssociableTypes: []string{"VirtualMachine"},
	})
	if err != nil {
		return "", err
	}
	return its.TagManager.CreateTag(ctx, &tags.Tag{Name: "cluster-1", CategoryID: category})
}

// grouped creates the group of machines that the provider expects in a cluster.
func grouped(ctx context.Context, its *session.Session, name string) error {
	cluster, err := its.Finder.ClusterComputeResource(ctx, name)
	if err != nil {
		return err
	}
	added := types.ClusterGroupSpec{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: group}},
	}
	spec := &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{added}}
	task, err := cluster.Reconfigure(ctx, spec, true)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

func (c *client) describe(its *session.Session) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap", Namespace: fake.Namespace},
		Data:       map[string][]byte{"value": []byte("#cloud-config\n")},
	}
	cluster := "/dc1/host/" + c.cluster
	clone := infrav1.VirtualMachineCloneSpec{
		Template: "debian-12", CloneMode: infrav1.FullClone, Server: os.Getenv("SERVER"),
		Datacenter: "dc1", ResourcePool: cluster + "/Resources", StoragePolicyName: "vSAN Default Storage Policy",
		Network: infrav1.NetworkSpec{Devices: []infrav1.NetworkDeviceSpec{{NetworkName: "rdma-vm", DHCP4: true}}},
		NumCPUs: 4, MemoryMiB: memory, DiskGiB: disk, TagIDs: []string{c.tag}, HardwareVersion: "vmx-21",
		PciDevices: []infrav1.PCIDeviceSpec{c.gpu},
	}
	vm := &infrav1.VSphereVM{
		ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: fake.Namespace, UID: kubernetes.UID(c.uid)},
		Spec: infrav1.VSphereVMSpec{
			BootstrapRef:            &corev1.ObjectReference{Name: secret.Name, Namespace: fake.Namespace},
			PowerOffMode:            infrav1.VirtualMachinePowerOpModeSoft,
			VirtualMachineCloneSpec: clone,
		},
	}
	zone := &infrav1.VSphereFailureDomain{Spec: infrav1.VSphereFailureDomainSpec{Topology: infrav1.Topology{
		ComputeCluster: &cluster, Hosts: &infrav1.FailureDomainHosts{VMGroupName: group},
	}}}
	manager := fake.NewControllerManagerContext(secret, vm)
	c.vm = &capv.VMContext{ControllerManagerContext: manager, VSphereVM: vm, Session: its, VSphereFailureDomain: zone}
	return nil
}

// await repeats a step as the provider's controller does, which keeps the state after each, until it is done.
func (c *client) await(step func() (bool, error)) error {
	key := kubernetes.NamespacedName{Namespace: fake.Namespace, Name: c.name}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err := c.vm.Client.Get(c.ctx, key, c.vm.VSphereVM)
		if err != nil {
			return err
		}
		if c.vm.PatchHelper, err = patch.NewHelper(c.vm.VSphereVM, c.vm.Client); err != nil {
			return err
		}
		if done, err := step(); done || err != nil {
			return err
		}
		if err = c.vm.Patch(c.ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("not done after %v: %+v", patience, c.vm.VSphereVM.Status)
}

func (c *client) reconcile() error {
	return c.await(func() (bool, error) {
		state, err := c.service.ReconcileVM(c.ctx, c.vm)
		if err != nil {
			err = fmt.Errorf("%w: %+v", err, c.vm.VSphereVM.Status.Conditions)
		}
		return state.State == infrav1.VirtualMachineStateReady && len(state.Network[0].IPAddrs) > 0, err
	})
}

func (c *client) destroy() error {
	return c.await(func() (bool, error) {
		_, state, err := c.service.DestroyVM(c.ctx, c.vm)
		return state.State == infrav1.VirtualMachineStateNotFound, err
	})
}

// compared returns the change version of the machine, or what differs from its description.
func (c *client) compared() (string, error) {
	vm, err := c.vm.Session.Finder.VirtualMachine(c.ctx, c.name)
	if err != nil {
		return "", err
	}
	var found mo.VirtualMachine
	if err = vm.Properties(c.ctx, vm.Reference(), []string{"config", "runtime", "network"}, &found); err != nil {
		return "", err
	}
	attached, err := c.vm.Session.TagManager.GetAttachedTags(c.ctx, found.Self)
	if wrong := c.wrong(found, attached); err == nil && len(wrong) > 0 {
		err = fmt.Errorf("differs: %v", wrong)
	}
	return found.Config.ChangeVersion, err
}

func (c *client) wrong(found mo.VirtualMachine, attached []tags.Tag) (list []string) {
	devices := object.VirtualDeviceList(found.Config.Hardware.Device)
	disks := devices.SelectByType((*types.VirtualDisk)(nil))
	locked := found.Config.MemoryReservationLockedToMax
	for what, right := range map[string]bool{
		"GPU":              len(devices.SelectByBackingInfo(c.backing)) == 1,
		"processors":       found.Config.Hardware.NumCPU == 4,
		"memory":           found.Config.Hardware.MemoryMB == memory,
		"locked memory":    locked != nil && *locked,
		"disk":             len(disks) == 1 && disks[0].(*types.VirtualDisk).CapacityInKB == disk<<20,
		"hardware version": found.Config.Version == "vmx-21",
		"power":            found.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn,
		"host":             c.vm.VSphereVM.Status.Host != "",
		"instance UUID":    found.Config.InstanceUuid == c.uid,
		"tag":              len(attached) == 1 && attached[0].ID == c.tag,
		"network":          len(found.Network) == 1,
	} {
		if !right {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return list
}
