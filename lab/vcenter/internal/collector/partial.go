package collector

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// sentKey names a value that a filter was sent.
type sentKey struct {
	filter, object vcsim.Ref
	path           string
}

// narrow replaces changed values by the changes within them, for filters that asked for partial updates.
// VMware: vSphere API reference, PropertyFilter.partialUpdates and PropertyChange.name: a change may name a part, an
// element of an array by its key: config.service.service["ntpd"].running (ManageIQ, property_collector.rb). vcsim
// sends whole values, whatever was asked.
func (p *propertyCollector) narrow(set *types.UpdateSet) {
	p.watched.mu.Lock()
	defer p.watched.mu.Unlock()
	for _, filter := range set.FilterSet {
		if !p.watched.partial[filter.Filter] {
			continue
		}
		for i, object := range filter.ObjectSet {
			var changes []types.PropertyChange
			for _, c := range object.ChangeSet {
				changes = append(changes, p.parts(sentKey{filter.Filter, object.Obj, c.Name}, c)...)
			}
			filter.ObjectSet[i].ChangeSet = changes
		}
	}
}

// parts are the changes within one changed value. The caller holds the lock of the watched properties.
func (p *propertyCollector) parts(key sentKey, c types.PropertyChange) []types.PropertyChange {
	was, known := p.watched.sent[key]
	now := inside(reflect.ValueOf(c.Val))
	if p.watched.sent == nil {
		p.watched.sent = map[sentKey]any{}
	}
	if now.IsValid() && now.Kind() == reflect.Struct {
		if copied, ok := deepCopy(now); ok {
			p.watched.sent[key], now = copied, reflect.ValueOf(copied) // both sides went the same way
		}
	}
	if !known || !now.IsValid() || reflect.TypeOf(was) != now.Type() {
		return []types.PropertyChange{c}
	}
	if found := differences(c.Name, reflect.ValueOf(was), now); len(found) > 0 {
		return found
	}
	return []types.PropertyChange{c}
}

// inside is what pointers and interfaces lead to.
func inside(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// differences are the changes that lead from one value to another, by the path of each.
func differences(path string, was, now reflect.Value) []types.PropertyChange {
	was, now = inside(was), inside(now)
	switch {
	case same(was, now):
		return nil
	case !was.IsValid() || !now.IsValid() || was.Type() != now.Type():
	case now.Kind() == reflect.Struct && now.Type().PkgPath() != "time":
		return fieldDifferences(path, was, now)
	case now.Kind() == reflect.Slice && keyed(now.Type().Elem()):
		return elementDifferences(path, was, now)
	}
	change := types.PropertyChange{Name: path, Op: types.PropertyChangeOpAssign}
	if now.IsValid() {
		change.Val = now.Interface()
	}
	return []types.PropertyChange{change}
}

func same(was, now reflect.Value) bool {
	if !was.IsValid() || !now.IsValid() {
		return was.IsValid() == now.IsValid()
	}
	return was.Type() == now.Type() && reflect.DeepEqual(was.Interface(), now.Interface())
}

func fieldDifferences(path string, was, now reflect.Value) []types.PropertyChange {
	var out []types.PropertyChange
	for i := range now.NumField() {
		f := now.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("xml"), ",")
		name := path + "." + tag
		if f.Anonymous || strings.HasPrefix(now.Type().Name(), "ArrayOf") {
			name = path
		}
		if f.IsExported() {
			out = append(out, differences(name, was.Field(i), now.Field(i))...)
		}
	}
	return out
}

// keyed says whether the elements of an array have keys.
func keyed(element reflect.Type) bool {
	if element.Kind() != reflect.Struct {
		return false
	}
	f, ok := element.FieldByName("Key")
	return ok && (f.Type.Kind() == reflect.String || f.Type.Kind() == reflect.Int32)
}

func elementDifferences(path string, was, now reflect.Value) []types.PropertyChange {
	old := map[string]reflect.Value{}
	for i := range was.Len() {
		old[element(path, was.Index(i))] = was.Index(i)
	}
	var out []types.PropertyChange
	for i := range now.Len() {
		name := element(path, now.Index(i))
		before, known := old[name]
		delete(old, name)
		if !known {
			added := types.PropertyChange{Name: name, Op: types.PropertyChangeOpAdd, Val: now.Index(i).Interface()}
			out = append(out, added)
			continue
		}
		out = append(out, differences(name, before, now.Index(i))...)
	}
	for name := range old {
		out = append(out, types.PropertyChange{Name: name, Op: types.PropertyChangeOpRemove})
	}
	return out
}

// element is the path of one element: its key in brackets, in quotation marks where it is a text.
func element(path string, v reflect.Value) string {
	key := v.FieldByName("Key")
	if key.Kind() == reflect.String {
		return fmt.Sprintf("%s[%q]", path, key.String())
	}
	return fmt.Sprintf("%s[%d]", path, key.Int())
}
