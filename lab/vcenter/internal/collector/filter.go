package collector

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// quiet stands for a filter of vcsim where changes of objects are told.
type quiet struct {
	self vcsim.Ref
	p    *propertyCollector
}

// Reference is the filter's, whose place this takes.
func (q quiet) Reference() vcsim.Ref { return q.self }

// PutObject does nothing, like that of a filter.
func (q quiet) PutObject(*simulator.Context, mo.Reference) {}

// RemoveObject does nothing, like that of a filter.
func (q quiet) RemoveObject(*simulator.Context, vcsim.Ref) {}

// UpdateObject notes that an object changed from which the filter starts.
// Ours: vcsim locks a filter where an object changes that the filter starts from, which is within the lock of a folder
// where a new virtual machine joins a view; and it locks virtual machines within the lock of the filter. So a client
// that clones and one that watches wait for each other for ever (docs/upstream.md). Views tell of new objects
// themselves. Where a filter starts from something else, its collector tells it before the next answer.
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

// tellFilters tells filters of the objects that changed from which they start.
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
