package graphics

import (
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// deviceInfo returns the GPU models that offer vGPU types. The caller holds the lock.
func (s *System) deviceInfo() []types.VirtualMachineVgpuDeviceInfo {
	var out []types.VirtualMachineVgpuDeviceInfo
	seen := map[string]bool{}
	for _, g := range s.host.Hardware.GPUs {
		if !s.offers(g) || seen[g.Model] {
			continue
		}
		seen[g.Model] = true
		m := s.host.Sim.Description.GPUModels[g.Model]
		info := types.VirtualMachineVgpuDeviceInfo{DeviceName: m.Name, DeviceVendorId: vendorID(m),
			MaxFbSizeInGib: m.MemoryMB >> 10, MigCapable: m.MIGCapable}
		info.Name = m.Name
		for _, p := range m.Profiles {
			info.TimeSlicedCapable = info.TimeSlicedCapable || p.Sharing == "timeSliced"
			info.ComputeProfileCapable = info.ComputeProfileCapable || p.Class == "compute"
			info.QuadroProfileCapable = info.QuadroProfileCapable || p.Class == "quadro"
		}
		out = append(out, info)
	}
	return out
}

// vendorID returns the PCI device and vendor in one number.
// Ours: how deviceVendorId combines the two is unknown (unproven).
func vendorID(m datacentre.GPUModel) int64 { return int64(m.DeviceID)<<16 | int64(m.VendorID) }

// stunSeconds estimates the stun time of a vMotion: 1 s plus 1.3 s for each GB of framebuffer at 10 Gb/s.
// VMware: VMware documentation, stun times of vSphere 7.0 at 10 Gb/s (one virtual machine).
// Ours: the scaling to other bandwidths.
func stunSeconds(gigabytes int64, megabits int64) int64 {
	return 1 + gigabytes*13*10000/(10*megabits)
}

// profileInfo returns the offered vGPU types. The caller holds the lock.
func (s *System) profileInfo() []types.VirtualMachineVgpuProfileInfo {
	var out []types.VirtualMachineVgpuProfileInfo
	for _, p := range s.offeredProfiles() {
		info := types.VirtualMachineVgpuProfileInfo{ProfileName: p.Name, FbSizeInGib: p.MemoryGB,
			ProfileSharing: p.Sharing, ProfileClass: p.Class}
		info.Name = p.Name
		for _, m := range s.host.Hardware.GPUs {
			info.DeviceVendorId = vendorID(s.host.Sim.Description.GPUModels[m.Model])
		}
		for _, megabits := range []int64{1000, 10000, 25000, 100000} {
			estimate := types.VirtualMachineVMotionStunTimeInfo{
				MigrationBW: megabits, StunTime: stunSeconds(p.MemoryGB, megabits)}
			estimate.Name = p.Name
			info.StunTimeEstimates = append(info.StunTimeEstimates, estimate)
		}
		out = append(out, info)
	}
	return out
}

// RetrieveVgpuDeviceInfo returns the GPU models that offer vGPU types.
// VMware: vSphere API reference 7.0.3, HostGraphicsManager.RetrieveVgpuDeviceInfo.
func (m *graphicsManager) RetrieveVgpuDeviceInfo(*types.RetrieveVgpuDeviceInfo) soap.HasFault {
	m.graphics.mu.Lock()
	defer m.graphics.mu.Unlock()
	return &methods.RetrieveVgpuDeviceInfoBody{
		Res: &types.RetrieveVgpuDeviceInfoResponse{Returnval: m.graphics.deviceInfo()}}
}

// RetrieveVgpuProfileInfo returns the offered vGPU types with estimates of their stun times.
// VMware: vSphere API reference, HostGraphicsManager.RetrieveVgpuProfileInfo (7.0.3), stunTimeEstimates (8.0.2).
func (m *graphicsManager) RetrieveVgpuProfileInfo(*types.RetrieveVgpuProfileInfo) soap.HasFault {
	m.graphics.mu.Lock()
	defer m.graphics.mu.Unlock()
	known := m.graphics.host.Sim.Knows.Scrub(m.graphics.profileInfo()).([]types.VirtualMachineVgpuProfileInfo)
	return &methods.RetrieveVgpuProfileInfoBody{Res: &types.RetrieveVgpuProfileInfoResponse{Returnval: known}}
}

// Offer adds the vGPU types, GPU models and device groups of the host to a config target, each type and model once.
func (s *System) Offer(target *types.ConfigTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.profileInfo() {
		known := func(other types.VirtualMachineVgpuProfileInfo) bool { return other.ProfileName == p.ProfileName }
		if slices.ContainsFunc(target.VgpuProfileInfo, known) {
			continue
		}
		target.VgpuProfileInfo = append(target.VgpuProfileInfo, p)
		target.SharedGpuPassthroughTypes = append(target.SharedGpuPassthroughTypes,
			types.VirtualMachinePciSharedGpuPassthroughInfo{
				VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: p.ProfileName}, Vgpu: p.ProfileName})
	}
	for _, d := range s.deviceInfo() {
		known := func(other types.VirtualMachineVgpuDeviceInfo) bool { return other.DeviceName == d.DeviceName }
		if !slices.ContainsFunc(target.VgpuDeviceInfo, known) {
			target.VgpuDeviceInfo = append(target.VgpuDeviceInfo, d)
		}
	}
	for _, name := range s.host.Hardware.DeviceGroups {
		target.VendorDeviceGroupInfo = append(target.VendorDeviceGroupInfo, deviceGroup(name))
	}
}
