package world

import (
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
)

// ESXi is a whole ESXi host: all its parts, its power and how it behaves.
type ESXi struct {
	*Host
	modules  *Modules
	pci      *PCI
	software *Software
	graphics *Graphics
	network  *Network
	services *Services

	mu        sync.Mutex // guards what follows; never held while a vcsim lock is taken
	down      bool       // between going down and booting
	behaviour behaviour
}

// behaviour is what the control interface may change of how a host behaves.
type behaviour struct {
	rebootSeconds  float64
	vmotionSeconds float64
	neverReturns   bool
}

// Hosts are all hosts of the data centre.
type Hosts struct {
	sim    *Sim
	fabric *Fabric

	mu   sync.Mutex
	byID map[ref]*ESXi
}

func newHosts(sim *Sim) *Hosts {
	return &Hosts{sim: sim, fabric: newFabric(sim), byID: map[ref]*ESXi{}}
}

// add gives a new host of vcsim its parts.
func (s *Hosts) add(ctx *simulator.Context, entity *simulator.HostSystem) *ESXi {
	base := newHost(s.sim, entity)
	h := &ESXi{Host: base, behaviour: behaviour{rebootSeconds: base.spec.RebootSeconds, vmotionSeconds: base.spec.VmotionSeconds}}
	s.mu.Lock()
	s.byID[h.self] = h
	s.mu.Unlock()
	cli := newExecuter(ctx, base)
	h.modules = newModules(ctx, base, cli)
	installHostOptions(ctx, base, cli)
	h.network = s.fabric.add(ctx, base, cli, h.modules)
	h.pci = newPCI(ctx, base, h.modules)
	h.software = newSoftware(ctx, base, cli, h.modules, h.pci)
	h.graphics = newGraphics(ctx, base, cli, h.modules, h.pci, h.software)
	h.services = newServices(ctx, base, cli, h.software, h.graphics)
	h.addCommands(cli)
	return h
}

// remove forgets a host that left the inventory.
func (s *Hosts) remove(gone ref) {
	s.fabric.remove(gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, gone)
}

// of is a host by its reference, nil when there is none.
func (s *Hosts) of(host ref) *ESXi {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[host]
}

// named finds a host by its name.
func (s *Hosts) named(name string) (*ESXi, bool) {
	for _, h := range s.all() {
		if h.spec.Name == name {
			return h, true
		}
	}
	return nil, false
}

func (s *Hosts) all() []*ESXi {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*ESXi
	for _, h := range s.byID {
		out = append(out, h)
	}
	return out
}

// names are the names of all hosts, sorted.
func (s *Hosts) names() []string {
	names := []string{}
	for _, h := range s.all() {
		names = append(names, h.spec.Name)
	}
	slices.Sort(names)
	return names
}

// vmotionSeconds is how long a vMotion from the host takes.
func (h *ESXi) vmotionSeconds() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.behaviour.vmotionSeconds
}

// neverReturn lets the next reboot of the host be its last.
func (h *ESXi) neverReturn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behaviour.neverReturns = true
}
