// Package vcsim has the interface to VMware's simulator (govmomi) that all parts share: registry, tasks, events,
// faults.
//
// vcsim: SOAP, sessions and login, views, search, custom attributes, histories of tasks and events.
package vcsim

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/clock"
	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/versions"
)

type Ref = types.ManagedObjectReference

// Sim is vcsim with the parts that all packages share: the registry, the description, tasks and events.
type Sim struct {
	Model       *simulator.Model
	Registry    *simulator.Registry
	Description *datacentre.Datacentre
	Knows       *versions.Known // the properties and methods of the description's version
	Client      *vim25.Client
	Clock       *clock.Clock

	// the datacenter and the datastore in the format of events; set once the inventory is complete
	Datacenter *types.DatacenterEventArgument
	Datastore  *types.DatastoreEventArgument

	Complete atomic.Bool // the description's inventory is complete

	mu     sync.Mutex
	owners map[Ref]Ref

	tasks                     changes
	taskCounter, chainCounter atomic.Int64
	offset                    atomic.Int64 // of the clock of the server, in nanoseconds
}

// New starts vcsim as a vCenter with the version in the description and an empty inventory.
func New(desc *datacentre.Datacentre) (*Sim, error) {
	once.Do(lighten)
	model := emptyModel(desc)
	if err := model.Create(); err != nil {
		return nil, err
	}
	client, err := vim25.NewClient(context.Background(), model.Service)
	if err != nil {
		return nil, err
	}
	return &Sim{Model: model, Registry: model.Map(), Description: desc, Knows: versions.For(desc.APIVersion),
		Client: client, Clock: new(clock.Clock), owners: map[Ref]Ref{},
		tasks: changes{waiting: map[Ref]chan struct{}{}}}, nil
}

func emptyModel(desc *datacentre.Datacentre) *simulator.Model {
	m := simulator.VPX()
	m.Datacenter, m.Cluster, m.ClusterHost, m.Host, m.Machine, m.Portgroup, m.Datastore = 0, 0, 0, 0, 0, 0, 0
	about := &m.ServiceContent.About
	about.ApiVersion, about.Version, about.Build = desc.APIVersion, desc.Version, desc.Build
	about.FullName = "VMware vCenter Server " + desc.Version + " build-" + desc.Build + " (simulated)"
	return m
}

// Context returns a new owner of locks that acts as the simulator.
func (s *Sim) Context() *simulator.Context {
	c := *s.Model.Service.Context
	return &c
}

// ContextOf returns a new owner of locks that acts for a user.
func (s *Sim) ContextOf(user string) *simulator.Context {
	ctx := s.Context()
	session := *ctx.Session
	session.UserName = user
	ctx.Session = &session
	return ctx
}

// Detached returns an owner of locks for work that outlives a call.
func Detached(ctx *simulator.Context) *simulator.Context {
	c := *ctx
	return &c
}

// Update changes properties under the lock of the object and notifies PropertyCollectors.
func (s *Sim) Update(ctx *simulator.Context, obj mo.Reference, changes ...types.PropertyChange) {
	s.Registry.AtomicUpdate(ctx, obj, changes)
}

// Change returns a change of one property.
func Change(name string, val any) types.PropertyChange {
	return types.PropertyChange{Name: name, Val: val}
}

// Put registers an object that belongs to an entity.
func (s *Sim) Put(ctx *simulator.Context, owner Ref, obj mo.Reference) {
	s.Own(owner, obj.Reference())
	ctx.Map.Put(obj)
}

// Own sets the entity to which objects belong.
func (s *Sim) Own(owner Ref, objects ...Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.owners[o] = owner
	}
}

// Disown removes the owner of an object that left the inventory.
func (s *Sim) Disown(gone Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, gone)
}

// Owner returns the entity to which an object belongs: itself, or the host of a host's manager.
func (s *Sim) Owner(of Ref) Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, ok := s.owners[of]; ok {
		return owner
	}
	return of
}

// Name returns the name of an entity, or "" for other objects.
func (s *Sim) Name(of Ref) string {
	entity, ok := s.Registry.Get(of).(mo.Entity)
	if !ok {
		return ""
	}
	var name string
	s.Registry.WithLock(s.Context(), entity, func() { name = entity.Entity().Name })
	return name
}

// Without returns the references without the removed ones.
func Without(refs []Ref, gone ...Ref) []Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return slices.Contains(gone, r) })
}

// NamePlaces sets the datacenter and the datastore for events.
func (s *Sim) NamePlaces(dc Ref) {
	s.Datacenter = &types.DatacenterEventArgument{EntityEventArgument: s.Place(dc), Datacenter: dc}
	for _, d := range s.Registry.AllReference("Datastore") {
		s.Datastore = &types.DatastoreEventArgument{EntityEventArgument: s.Place(d.Reference()),
			Datastore: d.Reference()}
	}
}

// Place returns an entity in the format of events.
func (s *Sim) Place(entity Ref) types.EntityEventArgument {
	return types.EntityEventArgument{Name: s.Name(entity)}
}
