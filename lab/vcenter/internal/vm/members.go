package vm

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// amongMembers runs f while every host of the cluster appears to be a member of the switches of these devices of
// which the virtual machine's host is a member.
// VMware: vSphere Networking: a virtual machine needs only its host on the switch. vcsim requires every host of the
// cluster, and returns InvalidArgument (docs/vcsim.md). The switch is locked meanwhile, so that no client sees
// the members.
func (m *Methods) amongMembers(j *vcsim.Job, devices []types.BaseVirtualDevice, f func()) {
	host, _, _ := m.place(j.Ctx)
	owner := vcsim.Detached(j.Ctx)
	for _, s := range m.partial(owner, devices, host) {
		release := m.sim.Registry.AcquireLock(owner, s)
		members := s.Summary.HostMember
		s.Summary.HostMember = slices.Concat(members, m.neighbours(host))
		defer func() {
			s.Summary.HostMember = members
			release()
		}()
	}
	f()
}

// partial returns the switches of these devices of which a host is a member, in the order of their references.
func (m *Methods) partial(
	ctx *simulator.Context, devices []types.BaseVirtualDevice, host vcsim.Ref,
) (list []*simulator.DistributedVirtualSwitch) {
	wanted := map[string]bool{}
	for _, d := range devices {
		b, ok := d.GetVirtualDevice().Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo)
		if ok {
			wanted[b.Port.SwitchUuid] = true
		}
	}
	for _, o := range m.sim.Registry.AllReference("DistributedVirtualSwitch") {
		s, ok := o.(*simulator.DistributedVirtualSwitch)
		if !ok || !wanted[s.Uuid] {
			continue
		}
		members := map[vcsim.Ref]bool{}
		ctx.WithLock(s, func() {
			for _, one := range s.Summary.HostMember {
				members[one] = true
			}
		})
		outside := slices.ContainsFunc(m.neighbours(host), func(one vcsim.Ref) bool { return !members[one] })
		if members[host] && outside {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *simulator.DistributedVirtualSwitch) int {
		return strings.Compare(a.Self.Value, b.Self.Value)
	})
	return list
}

// neighbours returns the hosts of the cluster of a host.
func (m *Methods) neighbours(host vcsim.Ref) (list []vcsim.Ref) {
	h, ok := m.sim.Registry.Get(host).(*simulator.HostSystem)
	if !ok || h.Parent == nil {
		return nil
	}
	if c, ok := m.sim.Registry.Get(*h.Parent).(*simulator.ClusterComputeResource); ok {
		list = slices.Clone(c.Host)
	}
	return list
}

// added returns the devices that changes add or edit.
func added(changes []types.BaseVirtualDeviceConfigSpec) (list []types.BaseVirtualDevice) {
	for _, c := range changes {
		change := c.GetVirtualDeviceConfigSpec()
		if change.Operation != types.VirtualDeviceConfigSpecOperationRemove {
			list = append(list, change.Device)
		}
	}
	return list
}
