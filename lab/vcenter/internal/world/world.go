// Package world is the simulated data centre: VMware's simulator with what it lacks added.
package world

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

type ref = types.ManagedObjectReference

// World holds what vcsim has no place for, and the way to vcsim.
type World struct {
	model  *simulator.Model
	reg    *simulator.Registry
	desc   *datacentre.Datacentre
	client *vim25.Client

	// what events say of the place; set once the inventory is complete
	datacenter *types.DatacenterEventArgument
	datastore  *types.DatastoreEventArgument

	// External is the listener that work on virtual machines may be handed to.
	External External

	mu       sync.Mutex
	hosts    map[ref]*Host
	owners   map[ref]ref
	clusters map[ref]*clusterState

	busy   map[ref]bool  // virtual machines with a task of ours
	claims map[claim]ref // PCI devices in use, by whom

	restCounter int
	restTasks   map[string]map[string]any

	taskCounter, chainCounter atomic.Int64
	built                     atomic.Bool // the description's inventory is complete
}

// New builds the data centre of a description; Close removes its files.
func New(desc *datacentre.Datacentre) (*World, error) {
	model := emptyModel(desc)
	if err := model.Create(); err != nil {
		return nil, err
	}
	w := &World{model: model, reg: model.Map(), desc: desc, hosts: map[ref]*Host{}, owners: map[ref]ref{}, clusters: map[ref]*clusterState{}, restTasks: map[string]map[string]any{}, busy: map[ref]bool{}, claims: map[claim]ref{}}
	w.External.waiting = map[string]*order{}
	client, err := vim25.NewClient(context.Background(), model.Service)
	if err != nil {
		return nil, err
	}
	w.client = client
	w.install()
	if err := w.build(context.Background()); err != nil {
		w.Close()
		return nil, err
	}
	w.built.Store(true)
	return w, nil
}

func emptyModel(desc *datacentre.Datacentre) *simulator.Model {
	m := simulator.VPX()
	m.Datacenter, m.Cluster, m.ClusterHost, m.Host, m.Machine, m.Portgroup, m.Datastore = 0, 0, 0, 0, 0, 0, 0
	about := &m.ServiceContent.About
	about.ApiVersion, about.Version, about.Build = desc.APIVersion, desc.Version, desc.Build
	about.FullName = "VMware vCenter Server " + desc.Version + " build-" + desc.Build + " (simulated)"
	return m
}

// Close removes the data centre's files.
func (w *World) Close() { w.model.Remove() }

// Service is vcsim's service, to be put behind a server.
func (w *World) Service() *simulator.Service { return w.model.Service }

// context is a new lock owner that acts as the simulator itself.
func (w *World) context() *simulator.Context {
	c := *w.model.Service.Context
	return &c
}

// detached is a lock owner of its own for work that outlives a call.
func detached(ctx *simulator.Context) *simulator.Context {
	c := *ctx
	return &c
}

// update changes properties under the object's lock and tells every waiting PropertyCollector.
func (w *World) update(ctx *simulator.Context, obj mo.Reference, changes ...types.PropertyChange) {
	w.reg.AtomicUpdate(ctx, obj, changes)
}

func change(name string, val any) types.PropertyChange {
	return types.PropertyChange{Name: name, Val: val}
}

// put registers an object that belongs to a host.
func (w *World) put(ctx *simulator.Context, owner ref, obj mo.Reference) {
	w.mu.Lock()
	w.owners[obj.Reference()] = owner
	w.mu.Unlock()
	ctx.Map.Put(obj)
}

// Owner is the entity an object belongs to: itself, or the host of a host's manager.
func (w *World) Owner(of ref) ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner, ok := w.owners[of]; ok {
		return owner
	}
	return of
}

// Name is the name of an entity, "" when it has none.
func (w *World) Name(of ref) string {
	entity, ok := w.reg.Get(of).(mo.Entity)
	if !ok {
		return ""
	}
	var name string
	w.reg.WithLock(w.context(), entity, func() { name = entity.Entity().Name })
	return name
}

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
