package versions

import (
	"reflect"
	"strings"
)

// madeFor is the newest version in this simulator's data.
const madeFor = "8.0.3.0"

// Scrub returns a value without the properties that the version does not support; it does not change the value
// itself.
func (k *Known) Scrub(value any) any {
	if value == nil || k.Since(madeFor) || !k.hasNewer(reflect.ValueOf(value)) {
		return value
	}
	return k.copied(reflect.ValueOf(value)).Interface()
}

// hasNewer reports whether a newer property in a value is set.
func (k *Known) hasNewer(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && k.hasNewer(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if k.hasNewer(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || v.Field(i).IsZero() {
				continue
			}
			if k.newer[nameOf(v.Type(), f)] || k.hasNewer(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// copied returns a copy of a value without newer properties.
func (k *Known) copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(k.copied(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(k.copied(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(k.copied(v.Index(i)))
			}
		}
	case reflect.Struct:
		k.copyFields(out, v)
	}
	return out
}

func (k *Known) copyFields(out, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case !f.IsExported():
		case k.newer[nameOf(v.Type(), f)]:
			out.Field(i).SetZero()
		default:
			out.Field(i).Set(k.copied(v.Field(i)))
		}
	}
}

// nameOf returns the name of a field in the table: Type.property.
func nameOf(owner reflect.Type, f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("xml"), ",")
	return owner.Name() + "." + tag
}
