// Package world is the simulated data centre: VMware's simulator with what it lacks added.
package world

import (
	"context"
	"sync"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// World holds what vcsim has no place for, and the way to vcsim.
type World struct {
	*Sim

	// External is the listener that work on virtual machines may be handed to.
	External External

	mu       sync.Mutex
	hosts    map[ref]*Host
	clusters map[ref]*clusterState

	busy   map[ref]bool  // virtual machines with a task of ours
	claims map[claim]ref // PCI devices in use, by whom

	restCounter int
	restTasks   map[string]map[string]any
}

// New builds the data centre of a description; Close removes its files.
func New(desc *datacentre.Datacentre) (*World, error) {
	sim, err := newSim(desc)
	if err != nil {
		return nil, err
	}
	w := &World{Sim: sim, hosts: map[ref]*Host{}, clusters: map[ref]*clusterState{}, restTasks: map[string]map[string]any{}, busy: map[ref]bool{}, claims: map[claim]ref{}}
	w.External.waiting = map[string]*order{}
	w.install()
	if err := w.build(context.Background()); err != nil {
		w.Close()
		return nil, err
	}
	w.built.Store(true)
	return w, nil
}

// Close removes the data centre's files.
func (w *World) Close() { w.model.Remove() }

// Service is vcsim's service, to be put behind a server.
func (w *World) Service() *simulator.Service { return w.model.Service }

// host is the state of a registered host, nil when there is none.
func (w *World) host(of ref) *Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[of]
}

// HostNamed finds a host by its name.
func (w *World) HostNamed(name string) (*Host, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if h.spec.Name == name {
			return h, true
		}
	}
	return nil, false
}
