// Package host has the common base of all parts of an ESXi host: its identity, its hardware and its connection.
//
// vcsim: the HostSystem object, disconnecting and reconnecting.
package host

import (
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Host is the common base of all parts of an ESXi host: its identity, its hardware and its connection.
type Host struct {
	Sim      *vcsim.Sim
	Entity   *simulator.HostSystem
	Self     vcsim.Ref
	Spec     datacentre.Host
	Hardware datacentre.Hardware

	Cluster       *types.ComputeResourceEventArgument // the cluster; set once the inventory is complete
	rebootReasons []func() bool                       // checks whether a part needs the next boot
}

// New sets the identity and the hardware of a host of vcsim.
func New(sim *vcsim.Sim, entity *simulator.HostSystem) *Host {
	spec := specOf(sim.Description, entity.Name)
	h := &Host{Sim: sim, Entity: entity, Self: entity.Self, Spec: spec,
		Hardware: sim.Description.Hardware[spec.Hardware]}
	h.ownManagers(entity.ConfigManager)
	manager := sim.Registry.Get(*entity.ConfigManager.CertificateManager).(*simulator.HostCertificateManager)
	manager.InstallServerCertificate(sim.Context(),
		&types.InstallServerCertificate{Cert: string(esx.HostConfigInfo.Certificate)})
	h.setHardware()
	return h
}

// specOf returns the description of a host; a host that is not in the description gets the defaults.
func specOf(desc *datacentre.Datacentre, name string) datacentre.Host {
	for _, c := range desc.Clusters {
		for _, h := range c.Hosts {
			if h.Name == name {
				return h
			}
		}
	}
	return datacentre.Host{Name: name, Hardware: "no_gpu", AcceptanceLevel: "partner",
		Graphics: datacentre.Graphics{Default: "shared", Policy: "performance"}}
}

// ownManagers makes the host the owner of its managers in vcsim.
func (h *Host) ownManagers(managers types.HostConfigManager) {
	for _, m := range []*vcsim.Ref{
		managers.AdvancedOption, managers.NetworkSystem, managers.VirtualNicManager, managers.FirewallSystem,
		managers.DatastoreSystem, managers.StorageSystem, managers.CertificateManager,
	} {
		if m != nil {
			h.Sim.Own(h.Self, *m)
		}
	}
}

// Complete sets the cluster and the version of the host. It runs after all hosts have joined their cluster, because
// vcsim panics when a host joins hosts newer than ESXi 8.0.2.
func (h *Host) Complete() {
	cluster := *h.Entity.Parent
	h.Cluster = &types.ComputeResourceEventArgument{EntityEventArgument: h.Sim.Place(cluster),
		ComputeResource: cluster}
	product := h.Entity.Config.Product
	product.Version, product.Build, product.ApiVersion = h.Sim.Description.Version, h.Sim.Description.Build,
		h.Sim.Description.APIVersion
	product.FullName = "VMware ESXi " + product.Version + " build-" + product.Build
	h.Entity.Config.Product = product
	h.Entity.Summary.Config.Product = &product
}

// setHardware sets the host's processors and memory.
func (h *Host) setHardware() {
	hw := h.Entity.Hardware
	cores := h.Hardware.Sockets * h.Hardware.CoresPerSocket
	hw.CpuInfo.NumCpuPackages, hw.CpuInfo.NumCpuCores, hw.CpuInfo.NumCpuThreads = h.Hardware.Sockets, cores, 2*cores
	hw.CpuInfo.Hz = int64(h.Hardware.MHz) * 1_000_000
	hw.MemorySize = h.Hardware.MemoryGB << 30
	hw.SystemInfo.Vendor, hw.SystemInfo.Model = h.Hardware.Vendor, h.Hardware.Model
	summary := h.Entity.Summary.Hardware
	summary.Vendor, summary.Model, summary.CpuMhz = h.Hardware.Vendor, h.Hardware.Model, h.Hardware.MHz
	summary.NumCpuPkgs, summary.NumCpuCores, summary.NumCpuThreads = h.Hardware.Sockets, cores, 2*cores
	summary.MemorySize = hw.MemorySize
	summary.NumNics = int32(len(h.Hardware.NICs))
	booted := h.Entity.Summary.Runtime.BootTime.Add(-time.Hour)
	h.Entity.Summary.Runtime.BootTime = &booted
}

// Manager registers one of the host's managers and returns its reference.
func (h *Host) Manager(ctx *simulator.Context, obj mo.Reference) *vcsim.Ref {
	h.Sim.Put(ctx, h.Self, obj)
	self := obj.Reference()
	return &self
}

// ManagerRef returns the reference of one of the host's managers.
func (h *Host) ManagerRef(kind, prefix string) vcsim.Ref {
	return vcsim.Ref{Type: kind, Value: prefix + "-" + h.Self.Value}
}

// Push changes properties of the host and notifies PropertyCollectors; the summary mirrors the runtime.
func (h *Host) Push(ctx *simulator.Context, changes ...types.PropertyChange) {
	all := slices.Clone(changes)
	for _, c := range changes {
		if strings.HasPrefix(c.Name, "runtime.") {
			all = append(all, vcsim.Change("summary."+c.Name, c.Val))
		}
	}
	h.Sim.Update(ctx, h.Entity, all...)
}

// Runtime returns a copy of the host's runtime.
func (h *Host) Runtime(ctx *simulator.Context) types.HostRuntimeInfo {
	var r types.HostRuntimeInfo
	ctx.WithLock(h.Entity, func() { r = h.Entity.Runtime })
	return r
}

// Machines returns the virtual machines that are registered on the host.
func (h *Host) Machines(ctx *simulator.Context) []vcsim.Ref {
	var list []vcsim.Ref
	ctx.WithLock(h.Entity, func() { list = slices.Clone(h.Entity.Vm) })
	return list
}

// Connected reports whether the vCenter has a connection to the host.
func (h *Host) Connected(ctx *simulator.Context) bool {
	return h.Runtime(ctx).ConnectionState == types.HostSystemConnectionStateConnected
}

// Unreachable returns the fault of every call that must reach the host while it is not connected: HostNotConnected or
// HostCommunication.
// VMware: vSphere API reference, HostNotConnected and HostCommunication.
func (h *Host) Unreachable(ctx *simulator.Context) *soap.Fault {
	switch h.Runtime(ctx).ConnectionState {
	case types.HostSystemConnectionStateConnected:
		return nil
	case types.HostSystemConnectionStateDisconnected:
		return simulator.Fault("Unable to communicate with the remote host, since it is disconnected.",
			&types.HostNotConnected{})
	default:
		return simulator.Fault("An error occurred while communicating with the remote host.",
			&types.HostCommunication{})
	}
}

// AddRebootReason adds a reason for a pending reboot.
func (h *Host) AddRebootReason(waits func() bool) { h.rebootReasons = append(h.rebootReasons, waits) }

// ShowReboot sets summary.rebootRequired: true while packages or DirectPath wait for the next boot.
// VMware: vSphere API reference, HostListSummary.rebootRequired.
// Ours: pending module options do not count (unproven).
func (h *Host) ShowReboot(ctx *simulator.Context) {
	required := slices.ContainsFunc(h.rebootReasons, func(waits func() bool) bool { return waits() })
	h.Push(ctx, vcsim.Change("summary.rebootRequired", required))
}

// Event returns the common part of all events of the host; vcsim's messages need all of it.
func (h *Host) Event() types.HostEvent {
	a := vcsim.HostArgument(h.Spec.Name, h.Self)
	return types.HostEvent{
		Event: types.Event{Host: &a, Datacenter: h.Sim.Datacenter, ComputeResource: h.Cluster, Ds: h.Sim.Datastore}}
}
