package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

func TestOneClientRenamesWhileOthersCloneAndDelete(t *testing.T) {
	r := launch(t, twoCards)
	end := time.Now().Add(3 * time.Second)
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			c := r.client()
			f := find.NewFinder(c.Client)
			folder, _ := f.Folder(r.ctx, "/dc1/vm")
			source, _ := f.VirtualMachine(r.ctx, "/dc1/vm/plain")
			pool, err := r.host("esx01.lab").ResourcePool(r.ctx)
			if err != nil {
				t.Error(err)
				return
			}
			ref := pool.Reference()
			for i := 0; time.Now().Before(end); i++ {
				task, err := source.Clone(r.ctx, folder, fmt.Sprintf("c%d-%d", n, i), types.VirtualMachineCloneSpec{
					Location: types.VirtualMachineRelocateSpec{Pool: &ref}})
				if err != nil {
					t.Error(err)
					return
				}
				info, err := task.WaitForResult(r.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				vm := object.NewVirtualMachine(c.Client, info.Result.(types.ManagedObjectReference))
				if task, err = vm.Destroy(r.ctx); err == nil {
					err = task.Wait(r.ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		c := r.client()
		vm, err := find.NewFinder(c.Client).VirtualMachine(r.ctx, "/dc1/vm/w1")
		if err != nil {
			t.Error(err)
			return
		}
		for i := 0; time.Now().Before(end); i++ {
			task, err := vm.Rename(r.ctx, fmt.Sprint("name", i))
			if err == nil {
				err = task.Wait(r.ctx)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Wait()
}
