// Package world is the simulated data centre: VMware's simulator with what it lacks added.
package world

import (
	"context"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// World is the simulated data centre.
type World struct {
	*Sim
	*Lifecycle
	hosts    *Hosts
	clusters *Clusters
	machines *Machines
}

// New builds the data centre of a description; Close removes its files.
func New(desc *datacentre.Datacentre) (*World, error) {
	sim, err := newSim(desc)
	if err != nil {
		return nil, err
	}
	hosts := newHosts(sim)
	clusters := newClusters(sim, hosts)
	w := &World{Sim: sim, Lifecycle: newLifecycle(sim, hosts, clusters), hosts: hosts, clusters: clusters, machines: newMachines(sim, hosts)}
	w.install()
	if err := buildInventory(context.Background(), sim, hosts, clusters, w.machines); err != nil {
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

// Machines are the virtual machines.
func (w *World) Machines() *Machines { return w.machines }

// HostNames are the names of all hosts, sorted.
func (w *World) HostNames() []string { return w.hosts.names() }

// HostNamed finds a host by its name.
func (w *World) HostNamed(name string) (*ESXi, bool) { return w.hosts.named(name) }

// ClusterNamed finds a cluster by its name.
func (w *World) ClusterNamed(name string) (*Cluster, bool) { return w.clusters.named(name) }

// ChangeHost changes a host as if somebody else had: nothing is logged as a write.
func (w *World) ChangeHost(h *ESXi, c HostChange) error {
	if err := h.Apply(c); err != nil {
		return err
	}
	if c.HostProfile != nil {
		attachProfile(w.context(), h.self, *c.HostProfile)
	}
	return nil
}

// EndSession makes vcsim forget a session.
func (w *World) EndSession(key string) {
	ctx := w.context()
	ctx.Context = context.Background()
	w.reg.SessionManager().TerminateSession(ctx, &types.TerminateSession{SessionId: []string{key}})
}

// NeverReturns lets the next reboot of a host be its last.
func (w *World) NeverReturns(host ref) {
	if h := w.hosts.of(host); h != nil {
		h.neverReturn()
	}
}
