package collector

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

func TestAFilterCoversWhatItCanShow(t *testing.T) {
	task, other := types.ManagedObjectReference{Type: "Task", Value: "t1"}, types.ManagedObjectReference{
		Type: "Task", Value: "t2"}
	vm := types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-1"}
	view := types.ManagedObjectReference{Type: "ContainerView", Value: "v"}
	type ref = types.ManagedObjectReference
	spec := func(obj ref, kind string, steps ...types.BaseSelectionSpec) types.PropertyFilterSpec {
		return types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: kind}},
			ObjectSet: []types.ObjectSpec{{Obj: obj, SelectSet: steps}}}
	}
	shown := &types.TraversalSpec{Type: "ContainerView", Path: "view"}
	walk := &types.TraversalSpec{Type: "Folder", Path: "childEntity"}
	deep := &types.TraversalSpec{Type: "ContainerView", Path: "view", SelectSet: []types.BaseSelectionSpec{walk}}
	for name, c := range map[string]struct {
		spec types.PropertyFilterSpec
		ref  types.ManagedObjectReference
		want bool
	}{
		"its object":                {spec(task, "Task"), task, true},
		"another object":            {spec(task, "Task"), other, false},
		"the view":                  {spec(view, "VirtualMachine", shown), view, true},
		"a type in the view":        {spec(view, "VirtualMachine", shown), vm, true},
		"another type":              {spec(view, "VirtualMachine", shown), task, false},
		"a parent type":             {spec(view, "ManagedEntity", shown), vm, true},
		"a walk through folders":    {spec(view, "Task", walk), vm, true},
		"a walk from what is shown": {spec(view, "Task", deep), vm, true},
	} {
		if covers(c.spec, c.ref) != c.want {
			t.Errorf("%s: not %v", name, c.want)
		}
	}
}
