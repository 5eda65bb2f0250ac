package main

import (
	"reflect"
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

const threeClusters = `
clusters:
  - {name: gpu, evc: intel-icelake, hosts: [{name: esx01.lab}]}
  - {name: more, evc: intel-icelake, hosts: [{name: esx02.lab}]}
  - {name: old, evc: intel-skylake, hosts: [{name: esx03.lab}]}
vms: [{name: w1, host: esx01.lab, powered_on: true}]
`

func TestMovesToAnotherClusterWithItsPoolAndFeatures(t *testing.T) {
	r := launch(t, threeClusters)
	move := func(name string, withPool bool) any {
		host := r.host(name)
		ref := host.Reference()
		spec := types.VirtualMachineRelocateSpec{Host: &ref}
		if withPool {
			pool, err := host.ResourcePool(r.ctx)
			r.must(err)
			spec.Pool = types.NewReference(pool.Reference())
		}
		task, err := r.vm("w1").Relocate(r.ctx, spec, types.VirtualMachineMovePriorityDefaultPriority)
		r.must(err)
		if err = task.Wait(r.ctx); err != nil {
			return faultOf(err)
		}
		return nil
	}
	if f, ok := move("esx02.lab", false).(*types.InvalidArgument); !ok || f.InvalidProperty != "spec.pool" {
		t.Error("a move to another cluster without a pool was not refused")
	}
	if f := move("esx03.lab", true); reflect.TypeOf(f) != reflect.TypeOf(new(types.FeatureRequirementsNotMet)) {
		t.Errorf("a move to older processors ended with %T", f)
	}
	if f := move("esx02.lab", true); f != nil {
		t.Errorf("a move with the pool of the other cluster ended with %T", f)
	}
}
