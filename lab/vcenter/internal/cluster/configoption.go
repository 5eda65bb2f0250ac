package cluster

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// limits is what the virtual hardware of a version can have. The last entry that is not newer applies.
type limits struct {
	since                         types.HardwareVersion
	protocols                     []string
	rdmaCards, vgpus, passthrough int32
}

var byHardware = []limits{
	{types.VMX10, nil, 0, 0, 16},
	{types.VMX11, nil, 0, 1, 16},
	{types.VMX13, []string{"rocev1"}, 1, 1, 16},
	{types.VMX14, []string{"rocev1", "rocev2"}, 1, 1, 16},
	{types.VMX15, []string{"rocev1", "rocev2"}, 1, 4, 16},
	{types.VMX19, []string{"rocev1", "rocev2"}, 10, 4, 16},
	{types.VMX20, []string{"rocev2"}, 10, 8, 128},
	{types.VMX21, []string{"rocev2"}, 10, 16, 128},
}

// QueryConfigOptionEx adds to VMware's answer the limits of the hardware version: PVRDMA cards, their protocols, vGPUs
// and devices in passthrough.
// VMware: VM Operator, external/vim/api/v1alpha1/testdata/xml: QueryConfigOption of ESXi 9.0 for vmx-10 to vmx-22.
func (e *BrowserMethods) QueryConfigOptionEx(ctx *simulator.Context, req *types.QueryConfigOptionEx) soap.HasFault {
	body := e.EnvironmentBrowser.QueryConfigOptionEx(req)
	if req.Spec == nil || req.Spec.Key == "" {
		return body
	}
	version, err := types.ParseHardwareVersion(req.Spec.Key)
	if err != nil {
		invalid := &types.InvalidArgument{InvalidProperty: "spec.key"}
		return &methods.QueryConfigOptionExBody{Fault_: simulator.Fault("", invalid)}
	}
	option := *body.(*methods.QueryConfigOptionExBody).Res.Returnval
	option.Version = req.Spec.Key
	complete(&option)
	for _, one := range byHardware {
		if one.since <= version {
			option.HardwareOptions.VirtualDeviceOption = one.options()
		}
	}
	return &methods.QueryConfigOptionExBody{Res: &types.QueryConfigOptionExResponse{Returnval: &option}}
}

// complete sets the names of types and levels that VMware's simulator leaves empty and pyVmomi requires.
func complete(option *types.VirtualMachineConfigOption) {
	for i := range option.GuestOSDescriptor {
		option.GuestOSDescriptor[i].RecommendedDiskController = "ParaVirtualSCSIController"
		option.GuestOSDescriptor[i].RecommendedCdromController = "VirtualAHCIController"
	}
	resources := &option.HardwareOptions.ResourceConfigOption
	resources.CpuAllocationOption.SharesOption.DefaultLevel = types.SharesLevelNormal
	resources.MemoryAllocationOption.SharesOption.DefaultLevel = types.SharesLevelNormal
}

func (l limits) options() []types.BaseVirtualDeviceOption {
	passed := &types.VirtualPCIPassthroughOption{}
	passed.Type = "VirtualPCIPassthrough"
	if l.vgpus > 0 {
		vgpu := &types.VirtualPCIPassthroughVmiopBackingOption{MaxInstances: l.vgpus}
		vgpu.Type = "VirtualPCIPassthroughVmiopBackingInfo"
		passed.BackingOption = []types.BaseVirtualDeviceBackingOption{vgpu}
	}
	controller := &types.VirtualPCIControllerOption{
		NumPCIPassthroughDevices:     types.IntOption{Max: l.passthrough},
		NumVmxnet3VrdmaEthernetCards: &types.IntOption{Max: l.rdmaCards},
	}
	controller.Type = "VirtualPCIController"
	out := []types.BaseVirtualDeviceOption{controller, passed}
	if len(l.protocols) > 0 {
		card := &types.VirtualVmxnet3VrdmaOption{DeviceProtocol: &types.ChoiceOption{}}
		card.Type = "VirtualVmxnet3Vrdma"
		for _, key := range l.protocols {
			choices := &card.DeviceProtocol.ChoiceInfo
			*choices = append(*choices, &types.ElementDescription{Key: key})
		}
		out = append(out, card)
	}
	return out
}
