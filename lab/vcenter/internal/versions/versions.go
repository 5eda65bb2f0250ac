// Package versions lists the properties and methods that each version of vSphere supports, from pyVmomi's type
// tables.
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

// Known is the set of properties and methods that a version supports.
type Known struct {
	number []int
	spoken []string        // the versions that clients may use, newest first
	newer  map[string]bool // properties and methods of newer versions
}

// For returns the properties and methods that a version such as 8.0.2.0 supports.
func For(version string) *Known {
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

// numbers returns the parts of a version as numbers, for comparison.
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

// Since reports whether the version is the named one or a later one.
func (k *Known) Since(version string) bool { return slices.Compare(k.number, numbers(version)) >= 0 }

// Prior returns the older versions that clients may use, newest first.
func (k *Known) Prior() []string { return k.spoken }

// Method reports whether a type has a method.
func (k *Known) Method(kind, method string) bool { return !k.newer[kind+"."+method+"()"] }

// Path reports whether a property path of a managed object can be read.
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
		if next == nil { // govmomi does not have it, or it does not exist
			return !k.anyNewer(at, name)
		}
		if k.newer[owner+"."+name] {
			return false
		}
		at = next
	}
	return true
}

// anyNewer reports whether a type or one of its base types got the property in a later version.
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

// field returns the type that declares a property and the type of the property, or nil if the property does not
// exist.
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
	for _, i := range found.Index[:len(found.Index)-1] { // the embedded structs are its base types
		at = at.Field(i).Type
	}
	return at.Name(), found.Type
}
