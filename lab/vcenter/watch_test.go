package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/types"
)

// watcher reports the updates that it receives for the virtual machines of a view: "enter vm-1 name=a", "modify ...",
// "leave vm-1".
func (r *running) watcher() (<-chan string, context.CancelFunc) {
	r.t.Helper()
	all, err := view.NewManager(r.c.Client).CreateContainerView(
		r.ctx, r.c.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	r.must(err)
	filter := new(property.WaitFilter).Add(all.Reference(), "VirtualMachine", []string{"name"}, all.TraversalSpec())
	heard := make(chan string, 1000)
	ctx, end := context.WithCancel(r.ctx)
	go func() {
		collector := property.DefaultCollector(r.c.Client)
		_ = property.WaitForUpdates(ctx, collector, filter, func(told []types.ObjectUpdate) bool {
			for _, one := range told {
				line := fmt.Sprint(one.Kind, " ", one.Obj.Value)
				for _, change := range one.ChangeSet {
					line += fmt.Sprint(" ", change.Name, "=", change.Val)
				}
				heard <- line
			}
			return false
		})
	}()
	return heard, end
}

func (r *running) hears(heard <-chan string, want string) {
	r.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case line := <-heard:
			if line == want {
				return
			}
		case <-late:
			r.t.Fatalf("the watcher does not hear %q", want)
		}
	}
}

// A watcher of a view receives each object that joins it, changes in it or leaves it.
func TestAWatcherOfAViewHearsOfAllThatHappensInIt(t *testing.T) {
	r := launch(t, strings.ReplaceAll(sized(2), "%04d", "%02d"))
	heard, end := r.watcher()
	defer end()
	machine := r.vm("a01")
	r.hears(heard, "enter "+machine.Reference().Value+" name=a01")
	r.finish(machine.Rename(r.ctx, "renamed"))
	r.hears(heard, "modify "+machine.Reference().Value+" name=renamed")
	for number := range 3 {
		name := fmt.Sprint("clone", number)
		made := r.clone("renamed", name, types.VirtualMachineCloneSpec{})
		r.hears(heard, "enter "+made.Reference().Value+" name="+name)
		r.finish(made.Rename(r.ctx, name+"-renamed"))
		r.hears(heard, "modify "+made.Reference().Value+" name="+name+"-renamed")
		r.finish(made.Destroy(r.ctx))
		r.hears(heard, "leave "+made.Reference().Value)
	}
}
