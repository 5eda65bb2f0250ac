package world

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

type ref = types.ManagedObjectReference

// Sim is vcsim with what every part of the simulator needs: the registry, the description, tasks and events.
type Sim struct {
	model  *simulator.Model
	reg    *simulator.Registry
	desc   *datacentre.Datacentre
	client *vim25.Client

	// what events say of the place; set once the inventory is complete
	datacenter *types.DatacenterEventArgument
	datastore  *types.DatastoreEventArgument

	built atomic.Bool // the description's inventory is complete

	mu     sync.Mutex
	owners map[ref]ref

	taskCounter, chainCounter atomic.Int64
}

// newSim starts vcsim with the service content of a vCenter of the description's version and an empty inventory.
func newSim(desc *datacentre.Datacentre) (*Sim, error) {
	model := emptyModel(desc)
	if err := model.Create(); err != nil {
		return nil, err
	}
	client, err := vim25.NewClient(context.Background(), model.Service)
	if err != nil {
		return nil, err
	}
	return &Sim{model: model, reg: model.Map(), desc: desc, client: client, owners: map[ref]ref{}}, nil
}

func emptyModel(desc *datacentre.Datacentre) *simulator.Model {
	m := simulator.VPX()
	m.Datacenter, m.Cluster, m.ClusterHost, m.Host, m.Machine, m.Portgroup, m.Datastore = 0, 0, 0, 0, 0, 0, 0
	about := &m.ServiceContent.About
	about.ApiVersion, about.Version, about.Build = desc.APIVersion, desc.Version, desc.Build
	about.FullName = "VMware vCenter Server " + desc.Version + " build-" + desc.Build + " (simulated)"
	return m
}

// context is a new lock owner that acts as the simulator itself.
func (s *Sim) context() *simulator.Context {
	c := *s.model.Service.Context
	return &c
}

// contextOf is a new lock owner that acts for a user.
func (s *Sim) contextOf(user string) *simulator.Context {
	ctx := s.context()
	session := *ctx.Session
	session.UserName = user
	ctx.Session = &session
	return ctx
}

// detached is a lock owner of its own for work that outlives a call.
func detached(ctx *simulator.Context) *simulator.Context {
	c := *ctx
	return &c
}

// update changes properties under the object's lock and tells every waiting PropertyCollector.
func (s *Sim) update(ctx *simulator.Context, obj mo.Reference, changes ...types.PropertyChange) {
	s.reg.AtomicUpdate(ctx, obj, changes)
}

func change(name string, val any) types.PropertyChange {
	return types.PropertyChange{Name: name, Val: val}
}

// put registers an object that belongs to an entity.
func (s *Sim) put(ctx *simulator.Context, owner ref, obj mo.Reference) {
	s.own(owner, obj.Reference())
	ctx.Map.Put(obj)
}

// own notes which entity an object belongs to.
func (s *Sim) own(owner ref, objects ...ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		s.owners[o] = owner
	}
}

// disown forgets an object that left the inventory.
func (s *Sim) disown(gone ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, gone)
}

// Owner is the entity an object belongs to: itself, or the host of a host's manager.
func (s *Sim) Owner(of ref) ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, ok := s.owners[of]; ok {
		return owner
	}
	return of
}

// Name is the name of an entity, "" when it has none.
func (s *Sim) Name(of ref) string {
	entity, ok := s.reg.Get(of).(mo.Entity)
	if !ok {
		return ""
	}
	var name string
	s.reg.WithLock(s.context(), entity, func() { name = entity.Entity().Name })
	return name
}

// without is a list of references that lacks some of them.
func without(refs []ref, gone ...ref) []ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r ref) bool { return slices.Contains(gone, r) })
}

// orText is the first text that is not empty.
func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// namePlaces notes what events say of datacenter and datastore.
func (s *Sim) namePlaces(dc ref) {
	s.datacenter = &types.DatacenterEventArgument{EntityEventArgument: s.place(dc), Datacenter: dc}
	for _, d := range s.reg.AllReference("Datastore") {
		s.datastore = &types.DatastoreEventArgument{EntityEventArgument: s.place(d.Reference()), Datastore: d.Reference()}
	}
}

// place is what events say of an entity.
func (s *Sim) place(entity ref) types.EntityEventArgument {
	return types.EntityEventArgument{Name: s.Name(entity)}
}
