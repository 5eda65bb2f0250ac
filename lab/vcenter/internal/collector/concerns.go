package collector

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// parents are the types of the API that others extend: a filter for one may include objects of many types.
var parents = []string{"ComputeResource", "ExtensibleManagedObject", "ManagedEntity", "ManagedObject", "Network"}

// PutObject is called by vcsim for every new object.
// Ours: see concerns.
func (p *propertyCollector) PutObject(ctx *simulator.Context, o mo.Reference) {
	if p.concerns(o.Reference()) && !p.hears() {
		p.PropertyCollector.PutObject(ctx, o)
	}
}

// concerns reports whether a change of an object can matter to the filters of this PropertyCollector.
// Ours: vcsim collects every filter again for every change of any object in the data centre. With 50 sessions that
// wait for tasks and 10 watchers, there is hardly any progress (docs/vcsim.md).
func (p *propertyCollector) concerns(ref vcsim.Ref) bool {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	if len(p.watched.specs) == 0 {
		return true
	}
	for _, spec := range p.watched.specs {
		if covers(spec, ref) {
			return true
		}
	}
	return false
}

// covers reports whether a filter can include an object: one that it names, one of a type that it shows in a view, or
// any object if it traverses the inventory.
func covers(spec types.PropertyFilterSpec, ref vcsim.Ref) bool {
	for _, set := range spec.ObjectSet {
		switch {
		case set.Obj == ref:
			return true
		case len(set.SelectSet) == 0:
		case !onlyView(set.SelectSet):
			return true
		case slices.ContainsFunc(spec.PropSet, func(s types.PropertySpec) bool {
			return s.Type == ref.Type || slices.Contains(parents, s.Type)
		}):
			return true
		}
	}
	return false
}

// onlyView reports whether a filter traverses only from a view to its objects.
func onlyView(steps []types.BaseSelectionSpec) bool {
	for _, step := range steps {
		walk, ok := step.(*types.TraversalSpec)
		if !ok || walk.Path != "view" || len(walk.SelectSet) > 0 {
			return false
		}
	}
	return true
}
