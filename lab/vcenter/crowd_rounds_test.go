package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// work runs rounds until allowed ends, and finishes the current round.
func (m *member) work(allowed, ctx context.Context) error {
	if m.kind() == "watches" {
		return m.watch(allowed)
	}
	round := map[string]func(context.Context) error{"reads": m.read, "reconfigures": m.reconfigure,
		"powers": m.power, "moves": m.move, "clones": m.clone, "sets hosts": m.setHost}[m.kind()]
	for {
		if err := round(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.kind(), err)
		}
		m.round()
		if allowed.Err() != nil {
			return nil
		}
	}
}

// own returns a host on whose virtual machines no other client works at the same time.
func (m *member) own() *object.HostSystem { return m.hosts[m.number%len(m.hosts)] }

func (m *member) machine(ctx context.Context, kind string) (*object.VirtualMachine, error) {
	name := kind + m.own().Name()[len("esx"):len("esx0000")]
	found, err := object.NewSearchIndex(m.c.Client).FindByInventoryPath(ctx, "/dc1/vm/"+name)
	if err != nil || found == nil {
		return nil, fmt.Errorf("virtual machine %s: %v, %w", name, found, err)
	}
	return found.(*object.VirtualMachine), nil
}

// wanted are properties of each host and of each virtual machine.
type wanted struct{ hosts, machines []string }

// The properties that a dashboard reads, and those that a backup reads.
var (
	shownOf = wanted{[]string{"name", "runtime", "vm"}, []string{"name", "runtime", "summary.quickStats"}}
	allOf   = wanted{[]string{"name", "runtime", "vm", "config.option"},
		[]string{"name", "runtime", "config", "summary"}}
)

func inventoryOf(ctx context.Context, c *govmomi.Client, paths wanted) ([]mo.HostSystem, []mo.VirtualMachine, error) {
	manager := view.NewManager(c.Client)
	all, err := manager.CreateContainerView(ctx, c.ServiceContent.RootFolder, nil, true)
	if err != nil {
		return nil, nil, err
	}
	var hosts []mo.HostSystem
	var machines []mo.VirtualMachine
	err = errors.Join(
		all.Retrieve(ctx, []string{"HostSystem"}, paths.hosts, &hosts),
		all.Retrieve(ctx, []string{"VirtualMachine"}, paths.machines, &machines))
	return hosts, machines, errors.Join(err, all.Destroy(ctx))
}

// read reads all hosts and virtual machines, and ignores those that are removed meanwhile. Every ninth client reads
// all properties.
func (m *member) read(ctx context.Context) error {
	paths := shownOf
	if m.number%9 == 0 {
		paths = allOf
	}
	hosts, machines, err := inventoryOf(ctx, m.c, paths)
	if err == nil && (len(hosts) != len(m.hosts) || len(machines) < 4*len(m.hosts)) {
		err = fmt.Errorf("%d hosts, %d virtual machines", len(hosts), len(machines))
	}
	return err
}

// watch counts the updates of all virtual machines.
func (m *member) watch(ctx context.Context) error {
	all, err := view.NewManager(m.c.Client).CreateContainerView(
		ctx, m.c.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	if err != nil {
		return err
	}
	filter := new(property.WaitFilter).Add(all.Reference(), "VirtualMachine",
		[]string{"name", "runtime.host", "runtime.powerState"}, all.TraversalSpec())
	collector := property.DefaultCollector(m.c.Client)
	err = property.WaitForUpdates(ctx, collector, filter, func(told []types.ObjectUpdate) bool {
		m.round()
		for _, one := range told {
			for _, change := range one.ChangeSet {
				if change.Val == lastName {
					close(m.heard)
				}
			}
		}
		return false
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func end(ctx context.Context, task *object.Task, err error) (*types.TaskInfo, error) {
	if err != nil {
		return nil, err
	}
	return task.WaitForResult(ctx)
}

func (m *member) reconfigure(ctx context.Context) error {
	machine, err := m.machine(ctx, "a")
	if err != nil {
		return err
	}
	note := fmt.Sprint("round ", m.rounds.Load())
	task, err := machine.Reconfigure(ctx, types.VirtualMachineConfigSpec{Annotation: note})
	if _, err = end(ctx, task, err); err != nil {
		return err
	}
	var seen mo.VirtualMachine
	if err := machine.Properties(ctx, machine.Reference(), []string{"config.annotation"}, &seen); err != nil {
		return err
	}
	if len(m.hosts) >= crowd && seen.Config.Annotation != note {
		return fmt.Errorf("%q instead of %q", seen.Config.Annotation, note)
	}
	return nil
}

// busy reports whether another client was faster, which can happen on any vCenter.
func busy(err error) bool {
	switch faultOf(err).(type) {
	case *types.TaskInProgress, *types.InvalidPowerState, types.TaskInProgress, types.InvalidPowerState:
		return true
	}
	return false
}

func (m *member) power(ctx context.Context) error {
	machine, err := m.machine(ctx, "c")
	if err != nil {
		return err
	}
	for _, each := range []func(context.Context) (*object.Task, error){machine.PowerOn, machine.PowerOff} {
		task, err := each(ctx)
		if _, err = end(ctx, task, err); err != nil && !busy(err) {
			return err
		}
	}
	return nil
}

// move moves a virtual machine to the next host and back.
func (m *member) move(ctx context.Context) error {
	machine, err := m.machine(ctx, "b")
	if err != nil {
		return err
	}
	for _, host := range []*object.HostSystem{m.hosts[(m.number+1)%len(m.hosts)], m.own()} {
		ref := host.Reference()
		task, err := machine.Relocate(ctx, types.VirtualMachineRelocateSpec{Host: &ref}, "")
		if _, err = end(ctx, task, err); err != nil && !busy(err) {
			return err
		}
	}
	return nil
}

// clone clones a virtual machine, renames the clone and removes it.
func (m *member) clone(ctx context.Context) error {
	machine, err := m.machine(ctx, "c")
	if err != nil {
		return err
	}
	pool, err := m.own().ResourcePool(ctx)
	if err != nil {
		return err
	}
	folder, err := find.NewFinder(m.c.Client).Folder(ctx, "/dc1/vm")
	if err != nil {
		return err
	}
	ref := pool.Reference()
	name := fmt.Sprintf("clone-%d-%d", m.number, m.rounds.Load())
	task, err := machine.Clone(ctx, folder, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &ref}})
	info, err := end(ctx, task, err)
	if err != nil {
		return err
	}
	made := object.NewVirtualMachine(m.c.Client, info.Result.(types.ManagedObjectReference))
	task, err = made.Rename(ctx, name+"-renamed")
	if _, err = end(ctx, task, err); err != nil {
		return err
	}
	task, err = made.Destroy(ctx)
	_, err = end(ctx, task, err)
	return err
}

// setHost sets an option and the firewall of a host.
func (m *member) setHost(ctx context.Context) error {
	options, err := m.own().ConfigManager().OptionManager(ctx)
	if err != nil {
		return err
	}
	value := &types.OptionValue{Key: "Net.PVRDMAVmknic", Value: fmt.Sprint("vmk", m.rounds.Load()%2)}
	if err := options.Update(ctx, []types.BaseOptionValue{value}); err != nil {
		return err
	}
	firewall, err := m.own().ConfigManager().FirewallSystem(ctx)
	if err != nil {
		return err
	}
	_, err = methods.EnableRuleset(ctx, m.c, &types.EnableRuleset{This: firewall.Reference(), Id: "pvrdma"})
	return err
}
