// Package versions is what each version of vSphere knows: properties and methods, by the type tables of pyVmomi.
package versions

import (
	_ "embed"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

//go:embed since.txt
var table string

// Known is what one version knows.
type Known struct {
	number []int
	spoken []string        // the versions that clients may speak, newest first
	newer  map[string]bool // what came later
}

// Of is what a version such as 8.0.2.0 knows.
func Of(version string) *Known {
	k := &Known{number: numbers(version), newer: map[string]bool{}}
	for line := range strings.Lines(table) {
		since, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		later := slices.Compare(numbers(since), k.number) > 0
		switch {
		case since == "" || since == "#":
		case name != "" && later:
			k.newer[name] = true
		case name == "" && !later && since != version:
			k.spoken = append(k.spoken, since)
		}
	}
	return k
}

// numbers are the parts of a version, to compare.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// Since says whether the version is the named one or a later one.
func (k *Known) Since(version string) bool { return slices.Compare(k.number, numbers(version)) >= 0 }

// Prior are the older versions that clients may speak, newest first.
func (k *Known) Prior() []string { return k.spoken }

// Method says whether a type has a method.
func (k *Known) Method(kind, method string) bool { return !k.newer[kind+"."+method+"()"] }

// Path says whether a property path of a managed object can be read.
func (k *Known) Path(kind, path string) bool {
	object, ok := mo.Value(types.ManagedObjectReference{Type: kind})
	if !ok {
		first, _, _ := strings.Cut(path, ".")
		return !k.newer[kind+"."+first]
	}
	at := reflect.TypeOf(object)
	for name := range strings.SplitSeq(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		owner, next := field(at, name)
		if next == nil { // govmomi does not know it, or nobody does, which is not this package's affair
			return !k.anyNewer(at, name)
		}
		if k.newer[owner+"."+name] {
			return false
		}
		at = next
	}
	return true
}

// anyNewer says whether a type or one that it extends got the property later.
func (k *Known) anyNewer(at reflect.Type, property string) bool {
	if at.Kind() != reflect.Struct {
		return false
	}
	if k.newer[at.Name()+"."+property] {
		return true
	}
	for i := range at.NumField() {
		if f := at.Field(i); f.Anonymous && k.anyNewer(f.Type, property) {
			return true
		}
	}
	return false
}

// field is the type that declares a property, and the type of the property; nil where there is no such property.
func field(at reflect.Type, property string) (string, reflect.Type) {
	for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
		at = at.Elem()
	}
	if at.Kind() != reflect.Struct {
		return "", nil
	}
	found, ok := at.FieldByName(strings.ToUpper(property[:1]) + property[1:])
	if !ok {
		return "", nil
	}
	for _, i := range found.Index[:len(found.Index)-1] { // the embedded structs are the types that it extends
		at = at.Field(i).Type
	}
	return at.Name(), found.Type
}
