package world

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// environmentMethods adds GPUs and passthrough to what vcsim says a host offers to virtual machines.
type environmentMethods struct {
	*simulator.EnvironmentBrowser
	world *World
}

// QueryConfigTarget says what the host named, or any host of the cluster, offers.
func (e *environmentMethods) QueryConfigTarget(ctx *simulator.Context, req *types.QueryConfigTarget) soap.HasFault {
	body := e.EnvironmentBrowser.QueryConfigTarget(ctx, req)
	res := body.(*methods.QueryConfigTargetBody).Res
	if res == nil {
		return body
	}
	target := *res.Returnval
	for _, h := range e.hosts(ctx, req.Host) {
		h.offer(&target)
	}
	return &methods.QueryConfigTargetBody{Res: &types.QueryConfigTargetResponse{Returnval: &target}}
}

func (e *environmentMethods) hosts(ctx *simulator.Context, one *ref) []*Host {
	if one != nil {
		if h := e.world.host(*one); h != nil {
			return []*Host{h}
		}
		return nil
	}
	var out []*Host
	for _, o := range e.world.reg.AllReference("ClusterComputeResource") {
		cluster := o.(*simulator.ClusterComputeResource)
		ctx.WithLock(cluster, func() {
			if cluster.EnvironmentBrowser != nil && *cluster.EnvironmentBrowser == e.Self {
				for _, r := range cluster.Host {
					if h := e.world.host(r); h != nil {
						out = append(out, h)
					}
				}
			}
		})
	}
	return out
}

// offer adds what one host offers, each vGPU type once.
func (h *Host) offer(target *types.ConfigTarget) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.profileInfo() {
		known := func(other types.VirtualMachineVgpuProfileInfo) bool { return other.ProfileName == p.ProfileName }
		if slices.ContainsFunc(target.VgpuProfileInfo, known) {
			continue
		}
		target.VgpuProfileInfo = append(target.VgpuProfileInfo, p)
		target.SharedGpuPassthroughTypes = append(target.SharedGpuPassthroughTypes,
			types.VirtualMachinePciSharedGpuPassthroughInfo{VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: p.ProfileName}, Vgpu: p.ProfileName})
	}
	for _, d := range h.deviceInfo() {
		known := func(other types.VirtualMachineVgpuDeviceInfo) bool { return other.DeviceName == d.DeviceName }
		if !slices.ContainsFunc(target.VgpuDeviceInfo, known) {
			target.VgpuDeviceInfo = append(target.VgpuDeviceInfo, d)
		}
	}
	for _, name := range h.kit.DeviceGroups {
		target.VendorDeviceGroupInfo = append(target.VendorDeviceGroupInfo, deviceGroup(name))
	}
	for _, d := range h.pciDevices {
		p := h.passthru[d.Id]
		if !p.active {
			continue
		}
		info := types.VirtualMachineTargetInfo{Name: d.DeviceName}
		target.PciPassthrough = append(target.PciPassthrough, &types.VirtualMachinePciPassthroughInfo{VirtualMachineTargetInfo: info, PciDevice: d, SystemId: h.systemID()})
		target.DynamicPassthrough = append(target.DynamicPassthrough, types.VirtualMachineDynamicPassthroughInfo{VirtualMachineTargetInfo: info,
			VendorName: d.VendorName, DeviceName: d.DeviceName, CustomLabel: p.label, VendorId: int32(uint16(d.VendorId)), DeviceId: int32(uint16(d.DeviceId))})
	}
}

// systemID is how a host names itself in passthrough backings.
func (h *Host) systemID() string { return fmt.Sprintf("lab-%s", h.self.Value) }
