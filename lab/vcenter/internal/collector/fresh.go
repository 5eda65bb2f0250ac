package collector

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// look is how often a wait looks for new objects.
const look = 20 * time.Millisecond

// freshness is what a PropertyCollector knows of objects that joined views since it told them all.
type freshness struct {
	narrowed  map[vcsim.Ref]bool        // the filters that are asked for new objects alone
	joined    map[vcsim.Ref][]vcsim.Ref // by filter: new objects, not told yet
	arriving  map[vcsim.Ref][]vcsim.Ref // by filter: those that vcsim still makes
	cancelled bool                      // by the client, not by this package
}

// join notes what a view shows since it changed, for a filter that starts from it. A view appends what joins it.
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
			if !slices.Contains(into[filter], last) { // what leaves a view changes it too
				into[filter] = append(into[filter], last)
			}
		}
	}
}

// whole notes that vcsim has made a virtual machine to its end, which it does without the lock of the machine. The
// last that it gives it is its name.
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

// hears says whether all filters hear of new objects by their views.
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

// waitFresh waits for updates, and begins again where objects joined a view meanwhile.
// Ours: vcsim reads all objects of a view again for each change of one of them; with 4,000 virtual machines and
// somebody who changes one each second a watcher would hear of nothing any more (docs/upstream.md).
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
			seconds := int32(max(1, time.Until(*until).Seconds()))
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
	end := time.Now().Add(time.Duration(*req.Options.MaxWaitSeconds) * time.Second)
	return &end
}

// interrupt ends the next wait once an object joins a view; what it returns ends that, and says whether it did so.
func (p *propertyCollector) interrupt() func() bool {
	over, done := make(chan struct{}), make(chan bool)
	go func() {
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		struck := false
		for {
			select {
			case <-over:
				done <- struck
				return
			case <-ticker.C:
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
// Ours: bookkeeping, so that the wait does not begin again; the answer is vcsim's.
func (p *propertyCollector) CancelWaitForUpdates(
	_ *simulator.Context, req *types.CancelWaitForUpdates,
) soap.HasFault {
	p.watched.mu.Lock()
	p.watched.fresh.cancelled = true
	p.watched.mu.Unlock()
	return p.PropertyCollector.CancelWaitForUpdates(req)
}

// readViews lets all filters read whole views once more. What joins them from now on is noted: it may come too late to
// be read with the rest.
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

// showsViews says whether a filter starts from views of containers, and shows what is in them and nothing beyond.
func showsViews(ctx *simulator.Context, spec types.PropertyFilterSpec) bool {
	for _, set := range spec.ObjectSet {
		_, ok := ctx.Session.Get(set.Obj).(*containerView)
		if !ok || len(set.SelectSet) == 0 || !onlyView(set.SelectSet) {
			return false
		}
	}
	return len(spec.ObjectSet) > 0
}

// showFresh lets each narrowed filter read the objects that joined its views, at the next update of which it hears.
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
