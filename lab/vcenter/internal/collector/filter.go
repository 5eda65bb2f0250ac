package collector

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// quiet takes the place of a filter of vcsim for notifications about changed objects.
type quiet struct {
	self vcsim.Ref
	p    *propertyCollector
}

// Reference returns the reference of the replaced filter.
func (q quiet) Reference() vcsim.Ref { return q.self }

// PutObject does nothing, like that of a filter.
func (q quiet) PutObject(*simulator.Context, mo.Reference) {}

// RemoveObject does nothing, like that of a filter.
func (q quiet) RemoveObject(*simulator.Context, vcsim.Ref) {}

// UpdateObject records the change of an object from which the filter starts.
// Ours: when an object changes from which a filter starts, vcsim locks the filter. If a new virtual machine joins a
// view, this happens under the lock of a folder. vcsim also locks virtual machines under the lock of the filter, so
// that a client that clones and a client that watches wait for each other indefinitely (docs/vcsim.md). Views
// report new objects themselves. If a filter starts from another object, its collector notifies it before the next
// answer. Remove it with govmomi 0.57, which has another order of locks (#4109).
func (q quiet) UpdateObject(_ *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	ref := o.Reference()
	if ref.Type == "ContainerView" {
		q.p.join(q.self, ref, changes)
		return
	}
	q.p.watched.mu.Lock()
	defer q.p.watched.mu.Unlock()
	for _, set := range q.p.watched.specs[q.self].ObjectSet {
		if set.Obj == ref && len(set.SelectSet) > 0 {
			q.p.watched.moved[q.self] = o
		}
	}
}

// tellFilters notifies filters about changes of the objects from which they start.
func (p *propertyCollector) tellFilters(ctx *simulator.Context) {
	p.watched.mu.Lock()
	moved := p.watched.moved
	p.watched.moved = map[vcsim.Ref]mo.Reference{}
	p.watched.mu.Unlock()
	for self, o := range moved {
		if filter, ok := ctx.Session.Get(self).(*simulator.PropertyFilter); ok {
			filter.UpdateObject(ctx, o, nil)
		}
	}
}
