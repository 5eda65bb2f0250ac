package collector

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// sentKey identifies a value that was sent for a filter.
type sentKey struct {
	filter, object vcsim.Ref
	path           string
}

// narrow replaces changed values with the changes within them, for filters with partial updates.
// VMware: vSphere API reference, PropertyFilter.partialUpdates and PropertyChange.name: a change may name a part, an
// element of an array by its key: config.service.service["ntpd"].running (ManageIQ, property_collector.rb). vcsim
// always sends complete values.
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

// parts returns the changes within one changed value. The caller holds the lock of the watched properties.
func (p *propertyCollector) parts(key sentKey, c types.PropertyChange) []types.PropertyChange {
	was, known := p.watched.sent[key]
	now := inside(reflect.ValueOf(c.Val))
	if p.watched.sent == nil {
		p.watched.sent = map[sentKey]any{}
	}
	if now.IsValid() && now.Kind() == reflect.Struct {
		if copied, ok := deepCopy(now); ok {
			p.watched.sent[key], now = copied, reflect.ValueOf(copied) // both values are copies
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

// inside returns the value behind pointers and interfaces.
func inside(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// differences returns the changes from one value to another, each with its path.
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

// keyed reports whether the elements of an array have keys.
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

// element returns the path of one element: its key in brackets, in quotation marks if it is a string.
func element(path string, v reflect.Value) string {
	key := v.FieldByName("Key")
	if key.Kind() == reflect.String {
		return fmt.Sprintf("%s[%q]", path, key.String())
	}
	return fmt.Sprintf("%s[%d]", path, key.Int())
}
