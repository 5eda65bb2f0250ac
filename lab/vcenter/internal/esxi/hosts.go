// Package esxi simulates the complete ESXi host: its parts, its power and its maintenance mode.
//
// vcsim: nothing.
package esxi

import (
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
	"dml.vsphere/lab/vcenter/internal/host/graphics"
	"dml.vsphere/lab/vcenter/internal/host/modules"
	"dml.vsphere/lab/vcenter/internal/host/network"
	"dml.vsphere/lab/vcenter/internal/host/pci"
	"dml.vsphere/lab/vcenter/internal/host/services"
	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/options"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// Host is a complete ESXi host: its parts, its power and its behaviour.
type Host struct {
	*host.Host
	modules  *modules.System
	PCI      *pci.System
	Software *software.System
	Graphics *graphics.System
	network  *network.System
	services *services.System

	mu        sync.Mutex // guards what follows; never held while a vcsim lock is taken
	down      bool       // between shutdown and boot
	behaviour behaviour
}

// behaviour is set by the description and by the control interface.
type behaviour struct {
	rebootSeconds  float64
	driverSeconds  float64
	vmotionSeconds float64
	neverReturns   bool
	encryptsMoves  bool
}

// Hosts are all hosts of the data centre.
type Hosts struct {
	sim    *vcsim.Sim
	Fabric *network.Fabric

	mu    sync.Mutex
	byRef map[vcsim.Ref]*Host
}

// New returns an empty set of hosts.
func New(sim *vcsim.Sim) *Hosts {
	return &Hosts{sim: sim, Fabric: network.NewFabric(sim), byRef: map[vcsim.Ref]*Host{}}
}

// Add turns a new host of vcsim into a complete ESXi host.
func (s *Hosts) Add(ctx *simulator.Context, entity *simulator.HostSystem) *Host {
	base := host.New(s.sim, entity)
	encrypts := s.sim.Description.EncryptedVMotion
	if own := base.Spec.EncryptedVMotion; own != nil {
		encrypts = *own
	}
	entity.Capability.EncryptedVMotionSupported = &encrypts
	h := &Host{Host: base, behaviour: behaviour{rebootSeconds: base.Spec.RebootSeconds,
		vmotionSeconds: base.Spec.VmotionSeconds, encryptsMoves: encrypts}}
	s.mu.Lock()
	s.byRef[h.Self] = h
	s.mu.Unlock()
	cli := esxcli.New(ctx, base)
	h.modules = modules.New(ctx, base, cli)
	options.InstallHost(ctx, base, cli)
	h.network = s.Fabric.Add(ctx, base, cli, h.modules)
	h.PCI = pci.New(ctx, base, h.modules)
	h.Software = software.New(ctx, base, cli, h.modules, h.PCI)
	h.Graphics = graphics.New(ctx, base, cli, h.modules, h.PCI, h.Software)
	h.services = services.New(ctx, base, cli, h.Software, h.Graphics)
	h.addCommands(cli)
	return h
}

// Remove removes a host that left the inventory.
func (s *Hosts) Remove(gone vcsim.Ref) {
	s.Fabric.Remove(gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byRef, gone)
}

// ByRef returns a host by its reference, or nil without one.
func (s *Hosts) ByRef(host vcsim.Ref) *Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRef[host]
}

// Named finds a host by its name.
func (s *Hosts) Named(name string) (*Host, bool) {
	for _, h := range s.All() {
		if h.Spec.Name == name {
			return h, true
		}
	}
	return nil, false
}

// All returns the hosts, in no particular order.
func (s *Hosts) All() []*Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Host
	for _, h := range s.byRef {
		out = append(out, h)
	}
	return out
}

// Names returns the names of all hosts, sorted.
func (s *Hosts) Names() []string {
	names := []string{}
	for _, h := range s.All() {
		names = append(names, h.Spec.Name)
	}
	slices.Sort(names)
	return names
}

// VMotionSeconds returns the duration of a vMotion from the host.
func (h *Host) VMotionSeconds() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.behaviour.vmotionSeconds
}

// EncryptsMoves returns whether the host can encrypt moves.
func (h *Host) EncryptsMoves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.behaviour.encryptsMoves
}

// NeverReturn makes the next reboot of the host its last.
func (h *Host) NeverReturn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behaviour.neverReturns = true
}
