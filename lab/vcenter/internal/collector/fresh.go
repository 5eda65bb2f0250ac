package collector

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/clock"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// look is the interval at which a wait checks for new objects.
const look = 20 * time.Millisecond

// freshness is the state of a PropertyCollector about objects that joined views since it last reported all of them.
type freshness struct {
	narrowed  map[vcsim.Ref]bool        // the filters that read only new objects
	joined    map[vcsim.Ref][]vcsim.Ref // by filter: new objects, not reported yet
	arriving  map[vcsim.Ref][]vcsim.Ref // by filter: objects that vcsim is still creating
	cancelled bool                      // by the client, not by this package
}

// join records the objects that joined a changed view, for a filter that starts from it. A view appends new objects.
func (p *propertyCollector) join(filter, view vcsim.Ref, changes []types.PropertyChange) {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	isView := func(set types.ObjectSpec) bool { return set.Obj == view }
	if !p.watched.fresh.narrowed[filter] || !slices.ContainsFunc(p.watched.specs[filter].ObjectSet, isView) {
		return
	}
	for _, change := range changes {
		shown, ok := change.Val.(*types.ArrayOfManagedObjectReference)
		if ok && len(shown.ManagedObjectReference) > 0 {
			last := shown.ManagedObjectReference[len(shown.ManagedObjectReference)-1]
			into := p.watched.fresh.joined
			if last.Type == "VirtualMachine" {
				into = p.watched.fresh.arriving
			}
			if !slices.Contains(into[filter], last) { // objects that leave a view change it too
				into[filter] = append(into[filter], last)
			}
		}
	}
}

// whole records that vcsim has completed a virtual machine, which it builds without holding the lock of the machine.
// The name is the last property that vcsim sets.
func (p *propertyCollector) whole(ref vcsim.Ref, changes []types.PropertyChange) {
	if !slices.ContainsFunc(changes, func(c types.PropertyChange) bool { return c.Name == "name" }) {
		return
	}
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	for filter, refs := range p.watched.fresh.arriving {
		if slices.Contains(refs, ref) {
			p.watched.fresh.arriving[filter] = vcsim.Without(refs, ref)
			p.watched.fresh.joined[filter] = append(p.watched.fresh.joined[filter], ref)
		}
	}
}

// hears reports whether all filters receive new objects from their views.
func (p *propertyCollector) hears() bool {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	for filter := range p.watched.specs {
		if !p.watched.fresh.narrowed[filter] {
			return false
		}
	}
	return len(p.watched.specs) > 0
}

// waitFresh waits for updates, and starts again if objects joined a view meanwhile.
// Ours: vcsim reads all objects of a view again for each change of one of them. With 4,000 virtual machines and one
// change per second, a watcher would receive no more updates (docs/vcsim.md).
func (p *propertyCollector) waitFresh(ctx *simulator.Context, req *types.WaitForUpdatesEx) soap.HasFault {
	if req.Version == "" {
		p.readViews(ctx)
		return p.PropertyCollector.WaitForUpdatesEx(ctx, req)
	}
	p.watched.mu.Lock()
	p.watched.fresh.cancelled = false
	stock := len(p.watched.fresh.narrowed) == 0
	p.watched.mu.Unlock()
	if stock {
		return p.PropertyCollector.WaitForUpdatesEx(ctx, req)
	}
	until := deadline(req)
	for {
		p.showFresh(ctx)
		stop := p.interrupt()
		body := p.PropertyCollector.WaitForUpdatesEx(ctx, req)
		if interrupted := stop(); !interrupted || body.Fault() == nil {
			return body
		}
		left := *req
		if until != nil {
			seconds := int32(max(1, -clock.Machine.Since(*until).Seconds()))
			options := types.WaitOptions{MaxObjectUpdates: req.Options.MaxObjectUpdates, MaxWaitSeconds: &seconds}
			left.Options = &options
		}
		req = &left
	}
}

func deadline(req *types.WaitForUpdatesEx) *time.Time {
	if req.Options == nil || req.Options.MaxWaitSeconds == nil || *req.Options.MaxWaitSeconds <= 0 {
		return nil
	}
	end := clock.Machine.Now().Add(time.Duration(*req.Options.MaxWaitSeconds) * time.Second)
	return &end
}

// interrupt ends the next wait when an object joins a view; the returned function stops this, and reports whether it
// ended a wait.
func (p *propertyCollector) interrupt() func() bool {
	over, done := make(chan struct{}), make(chan bool)
	go func() {
		struck := false
		for {
			select {
			case <-over:
				done <- struck
				return
			case <-clock.Machine.After(look):
			}
			p.watched.mu.Lock()
			waiting := len(p.watched.fresh.joined) > 0
			p.watched.mu.Unlock()
			if waiting {
				struck = true
				p.PropertyCollector.CancelWaitForUpdates(&types.CancelWaitForUpdates{This: p.Self})
			}
		}
	}()
	return func() bool {
		close(over)
		struck := <-done
		p.watched.mu.Lock()
		defer p.watched.mu.Unlock()
		return struck && !p.watched.fresh.cancelled
	}
}

// CancelWaitForUpdates ends the wait of a client.
// Ours: bookkeeping, so that the wait does not start again; the answer is vcsim's.
func (p *propertyCollector) CancelWaitForUpdates(
	_ *simulator.Context, req *types.CancelWaitForUpdates,
) soap.HasFault {
	p.watched.mu.Lock()
	p.watched.fresh.cancelled = true
	p.watched.mu.Unlock()
	return p.PropertyCollector.CancelWaitForUpdates(req)
}

// readViews lets all filters read all objects of their views again. From now on it records objects that join, because
// they may be too late for this read.
func (p *propertyCollector) readViews(ctx *simulator.Context) {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	p.watched.fresh = freshness{narrowed: map[vcsim.Ref]bool{}, joined: map[vcsim.Ref][]vcsim.Ref{},
		arriving: map[vcsim.Ref][]vcsim.Ref{}}
	for self, spec := range p.watched.specs {
		if filter, ok := ctx.Session.Get(self).(*simulator.PropertyFilter); ok && showsViews(ctx, spec) {
			p.watched.fresh.narrowed[self] = true
			filter.Spec = spec
		}
	}
}

// showsViews reports whether a filter starts from views of containers and shows only the objects in them.
func showsViews(ctx *simulator.Context, spec types.PropertyFilterSpec) bool {
	for _, set := range spec.ObjectSet {
		_, ok := ctx.Session.Get(set.Obj).(*containerView)
		if !ok || len(set.SelectSet) == 0 || !onlyView(set.SelectSet) {
			return false
		}
	}
	return len(spec.ObjectSet) > 0
}

// showFresh lets each narrowed filter read the objects that joined its views, at its next update.
func (p *propertyCollector) showFresh(ctx *simulator.Context) {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	var one *vcsim.Ref
	for self := range p.watched.fresh.narrowed {
		filter, ok := ctx.Session.Get(self).(*simulator.PropertyFilter)
		if !ok {
			continue
		}
		filter.Spec.ObjectSet, filter.Spec.ReportMissingObjectsInResults = nil, types.NewBool(true)
		for _, ref := range p.watched.fresh.joined[self] {
			filter.Spec.ObjectSet = append(filter.Spec.ObjectSet, types.ObjectSpec{Obj: ref})
			one = &ref
		}
	}
	p.watched.fresh.joined = map[vcsim.Ref][]vcsim.Ref{}
	if one != nil {
		p.PropertyCollector.PutObject(ctx, one)
	}
}
