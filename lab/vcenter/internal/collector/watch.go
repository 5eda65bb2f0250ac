package collector

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// watched are the properties that the filters of a PropertyCollector watch. To notify a watcher of "info" about a
// change of "info.progress", vcsim reads the object again without its lock; this simulator sends a copy made under
// the lock.
type watched struct {
	mu      sync.Mutex
	specs   map[vcsim.Ref]types.PropertyFilterSpec
	partial map[vcsim.Ref]bool         // the filters that asked for partial updates
	sent    map[sentKey]any            // the values last sent for these
	moved   map[vcsim.Ref]mo.Reference // changed objects from which filters start
	fresh   freshness
}

// CreateFilter remembers which properties a new filter watches.
// Ours: bookkeeping for WaitForUpdatesEx; the answer is vcsim's.
func (p *propertyCollector) CreateFilter(ctx *simulator.Context, req *types.CreateFilter) soap.HasFault {
	if f := refuseUnknown(ctx, []types.PropertyFilterSpec{req.Spec}); f != nil {
		return &methods.CreateFilterBody{Fault_: vcsim.SoapFault(f)}
	}
	body := p.PropertyCollector.CreateFilter(ctx, req)
	if res := body.(*methods.CreateFilterBody).Res; res != nil {
		p.watched.mu.Lock()
		defer p.watched.mu.Unlock()
		if p.watched.specs == nil {
			p.watched.specs, p.watched.partial = map[vcsim.Ref]types.PropertyFilterSpec{}, map[vcsim.Ref]bool{}
			p.watched.moved = map[vcsim.Ref]mo.Reference{}
		}
		for old := range p.watched.specs {
			if !slices.Contains(p.Filter, old) {
				delete(p.watched.specs, old)
				delete(p.watched.partial, old)
			}
		}
		p.watched.specs[res.Returnval], p.watched.partial[res.Returnval] = req.Spec, req.PartialUpdates
		ctx.Map.AddHandler(quiet{res.Returnval, p})
	}
	return body
}

// CreatePropertyCollector creates a PropertyCollector with the fixes of this package.
// Ours: vcsim would create one without them.
func (p *propertyCollector) CreatePropertyCollector(
	ctx *simulator.Context, _ *types.CreatePropertyCollector,
) soap.HasFault {
	collector := &propertyCollector{}
	collector.Self.Type = "PropertyCollector" // otherwise the reference has the name of the Go type
	made := ctx.Session.Put(collector).Reference()
	return &methods.CreatePropertyCollectorBody{Res: &types.CreatePropertyCollectorResponse{Returnval: made}}
}

// WaitForUpdatesEx registers this PropertyCollector for updates instead of vcsim's PropertyCollector inside it.
// Ours: vcsim reads a watched struct again without a lock; this simulator sends a copy made under the lock.
func (p *propertyCollector) WaitForUpdatesEx(ctx *simulator.Context, req *types.WaitForUpdatesEx) soap.HasFault {
	p.tellFilters(ctx)
	body := p.waitFresh(ctx, req)
	if req.Version == "" {
		ctx.Map.AddHandler(p)
	}
	if res := body.(*methods.WaitForUpdatesExBody).Res; res != nil && res.Returnval != nil {
		scrubUpdates(ctx, res.Returnval)
		p.narrow(res.Returnval)
	}
	return body
}

// UpdateObject is called by vcsim under the lock of the changed object.
func (p *propertyCollector) UpdateObject(ctx *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	if p.concerns(o.Reference()) {
		p.whole(o.Reference(), changes)
		p.PropertyCollector.UpdateObject(ctx, o, p.widen(o, changes))
	}
}

// widen replaces the change of a part with a change of the whole struct if only the struct is watched.
// VMware: vSphere API reference, PropertyFilterSpec.pathSet: a path includes all properties below it.
func (p *propertyCollector) widen(o mo.Reference, changes []types.PropertyChange) []types.PropertyChange {
	paths := p.paths()
	var out []types.PropertyChange
	done := map[string]bool{}
	for _, c := range changes {
		whole := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			return path == c.Name || !strings.HasPrefix(c.Name, path+".")
		})
		if len(whole) == 0 || slices.Contains(paths, c.Name) {
			out = append(out, c)
		}
		for _, path := range whole {
			if done[path] {
				continue
			}
			done[path] = true
			if value, ok := snapshot(o, path); ok {
				out = append(out, types.PropertyChange{Name: path, Op: types.PropertyChangeOpAssign, Val: value})
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

// paths returns the watched properties of all types: a filter may name a parent type.
func (p *propertyCollector) paths() []string {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	var out []string
	for _, spec := range p.watched.specs {
		for _, set := range spec.PropSet {
			out = append(out, set.PathSet...)
		}
	}
	return out
}

// snapshot returns a deep copy of a struct in an object, or false if there is no struct at the path.
func snapshot(o mo.Reference, path string) (types.AnyType, bool) {
	value := reflect.ValueOf(o)
	for _, name := range strings.Split(path, ".") {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return nil, false
		}
		value = value.FieldByName(vcsim.Capital(name))
		if !value.IsValid() {
			return nil, false
		}
	}
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return nil, false
	}
	return deepCopy(value)
}

func deepCopy(value reflect.Value) (types.AnyType, bool) {
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).Encode(value.Interface()); err != nil {
		return nil, false
	}
	copied := reflect.New(value.Type())
	d := xml.NewDecoder(&b)
	d.TypeFunc = types.TypeFunc()
	if err := d.Decode(copied.Interface()); err != nil {
		return nil, false
	}
	return copied.Elem().Interface(), true
}
