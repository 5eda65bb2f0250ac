package world

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// Host is the state of one ESXi host beyond what vcsim keeps.
type Host struct {
	world  *World
	entity *simulator.HostSystem
	self   ref
	spec   datacentre.Host
	kit    datacentre.Hardware

	pciDevices []types.HostPciDevice               // never changes
	home       *types.ComputeResourceEventArgument // the cluster; set once the inventory is complete

	mu         sync.Mutex // guards everything below; never held while a vcsim lock is taken
	modules    map[string]*module
	net        network
	traffic    Traffic
	image      image
	pending    image // of the next boot; nil when it is the running one
	acceptance string
	passthru   map[string]passthru // by PCI address
	graphics   graphics
	slots      map[string][]slot             // vGPUs in use, by PCI address
	loads      map[string]datacentre.GPULoad // by PCI address; a GPU that is missing is not measured
	services   []types.HostService
	rulesets   []types.HostFirewallRuleset
	down       bool // between going down and booting
	moods      moods
}

// moods is what the control interface may change about a host's behaviour.
type moods struct {
	rebootSeconds  float64
	vmotionSeconds float64
	neverReturns   bool
}

// adopt gives a new host its state, its managers and its properties.
func (w *World) adopt(ctx *simulator.Context, entity *simulator.HostSystem) {
	spec := w.specOf(entity.Name)
	h := &Host{world: w, entity: entity, self: entity.Self, spec: spec, kit: w.desc.Hardware[spec.Hardware]}
	h.loads = maps.Clone(spec.GPULoad)
	h.moods = moods{rebootSeconds: spec.RebootSeconds, vmotionSeconds: spec.VmotionSeconds}
	w.mu.Lock()
	w.hosts[h.self] = h
	w.mu.Unlock()
	h.own(entity.ConfigManager)
	h.equip()
	h.installModules(ctx)
	h.installExecuter(ctx)
	h.installOptions(ctx)
	h.installNetwork(ctx)
	h.installVIBs()
	h.installImageConfig(ctx)
	h.installPassthru(ctx)
	h.installDevices()
	h.installServices(ctx)
	h.installGraphics(ctx)
	h.installFirewall(ctx)
	h.installRDMAUsers(ctx)
	h.installVsan(ctx)
	h.installClock(ctx)
}

// specOf is what the description says of a host; a host added later by a client gets the defaults.
func (w *World) specOf(name string) datacentre.Host {
	for _, c := range w.desc.Clusters {
		for _, h := range c.Hosts {
			if h.Name == name {
				return h
			}
		}
	}
	return datacentre.Host{Name: name, Hardware: "no_gpu", AcceptanceLevel: "partner", Graphics: datacentre.Graphics{Default: "shared", Policy: "performance"}}
}

// own notes which of vcsim's managers belong to the host.
func (h *Host) own(managers types.HostConfigManager) {
	for _, m := range []*ref{
		managers.AdvancedOption, managers.NetworkSystem, managers.VirtualNicManager, managers.FirewallSystem,
		managers.DatastoreSystem, managers.StorageSystem, managers.CertificateManager,
	} {
		if m != nil {
			h.world.own(h.self, *m)
		}
	}
}

// setVersion gives the host its version. It comes after all hosts have joined their cluster, because vcsim stops at
// versions of ESXi later than 8.0.2 when a host joins.
func (h *Host) setVersion() {
	product := h.entity.Config.Product
	product.Version, product.Build, product.ApiVersion = h.world.desc.Version, h.world.desc.Build, h.world.desc.APIVersion
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
	h.world.put(ctx, h.self, obj)
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
		if len(c.Name) > 8 && c.Name[:8] == "runtime." {
			all = append(all, change("summary."+c.Name, c.Val))
		}
	}
	h.world.update(ctx, h.entity, all...)
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
