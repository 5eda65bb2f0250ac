package front

import (
	"bytes"
	"context"
	"reflect"
	"regexp"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// Task is a vSphere task that the front ends.
type Task interface {
	Reference() types.ManagedObjectReference
	Succeed()
	Fail(fault types.BaseMethodFault, words string)
	// Follow ends the task with the result of another one.
	Follow(other types.ManagedObjectReference)
}

var taskValue = regexp.MustCompile(`<returnval[^>]*type="Task"[^>]*>([^<]+)<`)

// taskOf returns the task in an answer.
func taskOf(body []byte) (types.ManagedObjectReference, bool) {
	m := taskValue.FindSubmatch(body)
	if m == nil {
		return types.ManagedObjectReference{}, false
	}
	return types.ManagedObjectReference{Type: "Task", Value: string(m[1])}, true
}

// faultOf returns the fault in an answer.
func faultOf(body []byte) (types.BaseMethodFault, string) {
	var content struct {
		Fault *soap.Fault `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault"`
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.TypeFunc = types.TypeFunc()
	if err := d.Decode(&soap.Envelope{Body: &content}); err != nil || content.Fault == nil {
		return &types.SystemError{}, "the call was answered with neither a task nor a fault"
	}
	if fault, ok := content.Fault.VimFault().(types.BaseMethodFault); ok {
		return fault, content.Fault.String
	}
	// decoded faults are values; tasks need pointers
	value := reflect.ValueOf(content.Fault.VimFault())
	if value.IsValid() {
		pointer := reflect.New(value.Type())
		pointer.Elem().Set(value)
		if fault, ok := pointer.Interface().(types.BaseMethodFault); ok {
			return fault, content.Fault.String
		}
	}
	return &types.SystemError{}, content.Fault.String
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// detach returns the context of work that outlives its call.
func detach() context.Context { return context.Background() }
