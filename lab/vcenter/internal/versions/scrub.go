package versions

import (
	"reflect"
	"strings"
)

// madeFor is the version for which this simulator's data is made: it has nothing newer.
const madeFor = "8.0.3.0"

// Scrub is a value without the properties that the version does not know; the value itself stays as it is.
func (k *Known) Scrub(value any) any {
	if value == nil || k.Since(madeFor) || !k.hasNewer(reflect.ValueOf(value)) {
		return value
	}
	return k.copied(reflect.ValueOf(value)).Interface()
}

// hasNewer says whether something in a value is set that came later.
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

// copied is a copy of a value without what came later.
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

// nameOf is a field as the table names it: Type.property.
func nameOf(owner reflect.Type, f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("xml"), ",")
	return owner.Name() + "." + tag
}
