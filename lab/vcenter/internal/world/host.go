package world

import (
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Host is what every part of an ESXi host needs: its identity, its hardware and its connection.
type Host struct {
	sim    *Sim
	entity *simulator.HostSystem
	self   ref
	spec   datacentre.Host
	kit    datacentre.Hardware

	home  *types.ComputeResourceEventArgument // the cluster; set once the inventory is complete
	waits []func() bool                       // what may wait for the next boot
}

// newHost gives a host of vcsim its identity and its hardware.
func newHost(sim *Sim, entity *simulator.HostSystem) *Host {
	spec := specOf(sim.desc, entity.Name)
	h := &Host{sim: sim, entity: entity, self: entity.Self, spec: spec, kit: sim.desc.Hardware[spec.Hardware]}
	h.ownManagers(entity.ConfigManager)
	h.equip()
	return h
}

// specOf is what the description says of a host; a host that it does not name gets the defaults.
func specOf(desc *datacentre.Datacentre, name string) datacentre.Host {
	for _, c := range desc.Clusters {
		for _, h := range c.Hosts {
			if h.Name == name {
				return h
			}
		}
	}
	return datacentre.Host{Name: name, Hardware: "no_gpu", AcceptanceLevel: "partner", Graphics: datacentre.Graphics{Default: "shared", Policy: "performance"}}
}

// ownManagers notes which of vcsim's managers belong to the host.
func (h *Host) ownManagers(managers types.HostConfigManager) {
	for _, m := range []*ref{
		managers.AdvancedOption, managers.NetworkSystem, managers.VirtualNicManager, managers.FirewallSystem,
		managers.DatastoreSystem, managers.StorageSystem, managers.CertificateManager,
	} {
		if m != nil {
			h.sim.own(h.self, *m)
		}
	}
}

// complete notes the host's cluster and gives the host its version. It comes after all hosts have joined their cluster, because vcsim stops at
// versions of ESXi later than 8.0.2 when a host joins.
func (h *Host) complete() {
	cluster := *h.entity.Parent
	h.home = &types.ComputeResourceEventArgument{EntityEventArgument: h.sim.place(cluster), ComputeResource: cluster}
	product := h.entity.Config.Product
	product.Version, product.Build, product.ApiVersion = h.sim.desc.Version, h.sim.desc.Build, h.sim.desc.APIVersion
	product.FullName = "VMware ESXi " + product.Version + " build-" + product.Build
	h.entity.Config.Product = product
	h.entity.Summary.Config.Product = &product
}

// equip sets the host's processors and memory.
func (h *Host) equip() {
	hw := h.entity.Hardware
	cores := h.kit.Sockets * h.kit.CoresPerSocket
	hw.CpuInfo.NumCpuPackages, hw.CpuInfo.NumCpuCores, hw.CpuInfo.NumCpuThreads = h.kit.Sockets, cores, 2*cores
	hw.CpuInfo.Hz = int64(h.kit.MHz) * 1_000_000
	hw.MemorySize = h.kit.MemoryGB << 30
	hw.SystemInfo.Vendor, hw.SystemInfo.Model = h.kit.Vendor, h.kit.Model
	summary := h.entity.Summary.Hardware
	summary.Vendor, summary.Model, summary.CpuMhz = h.kit.Vendor, h.kit.Model, h.kit.MHz
	summary.NumCpuPkgs, summary.NumCpuCores, summary.NumCpuThreads = h.kit.Sockets, cores, 2*cores
	summary.MemorySize = hw.MemorySize
	summary.NumNics = int32(len(h.kit.NICs))
	booted := h.entity.Summary.Runtime.BootTime.Add(-time.Hour)
	h.entity.Summary.Runtime.BootTime = &booted
}

// manager registers one of the host's managers and returns its reference.
func (h *Host) manager(ctx *simulator.Context, obj mo.Reference) *ref {
	h.sim.put(ctx, h.self, obj)
	self := obj.Reference()
	return &self
}

func (h *Host) managerRef(kind, prefix string) ref {
	return ref{Type: kind, Value: prefix + "-" + h.self.Value}
}

// push changes properties of the host and tells every waiting PropertyCollector; the summary mirrors the runtime.
func (h *Host) push(ctx *simulator.Context, changes ...types.PropertyChange) {
	all := slices.Clone(changes)
	for _, c := range changes {
		if strings.HasPrefix(c.Name, "runtime.") {
			all = append(all, change("summary."+c.Name, c.Val))
		}
	}
	h.sim.update(ctx, h.entity, all...)
}

// runtime is a copy of the host's runtime.
func (h *Host) runtime(ctx *simulator.Context) types.HostRuntimeInfo {
	var r types.HostRuntimeInfo
	ctx.WithLock(h.entity, func() { r = h.entity.Runtime })
	return r
}

func (h *Host) connected(ctx *simulator.Context) bool {
	return h.runtime(ctx).ConnectionState == types.HostSystemConnectionStateConnected
}

// unreachable is the fault of every call that must reach the host while vCenter has no connection to it.
func (h *Host) unreachable(ctx *simulator.Context) *soap.Fault {
	switch h.runtime(ctx).ConnectionState {
	case types.HostSystemConnectionStateConnected:
		return nil
	case types.HostSystemConnectionStateDisconnected:
		return simulator.Fault("Unable to communicate with the remote host, since it is disconnected.", &types.HostNotConnected{})
	default:
		return simulator.Fault("An error occurred while communicating with the remote host.", &types.HostCommunication{})
	}
}

// mayWait adds something that may wait for the next boot.
func (h *Host) mayWait(waits func() bool) { h.waits = append(h.waits, waits) }

// showReboot shows whether something waits for the next boot.
func (h *Host) showReboot(ctx *simulator.Context) {
	required := slices.ContainsFunc(h.waits, func(waits func() bool) bool { return waits() })
	h.push(ctx, change("summary.rebootRequired", required))
}

// event is what every event on the host says; vcsim's texts need all of it.
func (h *Host) event() types.HostEvent {
	a := hostArgument(h.spec.Name, h.self)
	return types.HostEvent{Event: types.Event{Host: &a, Datacenter: h.sim.datacenter, ComputeResource: h.home, Ds: h.sim.datastore}}
}
