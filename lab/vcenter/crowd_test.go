package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The crowd works so long on so many hosts, unless DML_CROWD_SECONDS and DML_CROWD_HOSTS say otherwise (make crowd).
const crowdSeconds, crowdHosts = 3, 6

// clients of a crowd; the others of the 50 change.
const crowd, readers, watchers = 50, 18, 10

// member is one client of a crowd, with a session of its own.
type member struct {
	number int
	c      *govmomi.Client
	hosts  []*object.HostSystem
	rounds atomic.Int64
	begun  chan struct{} // closed after its first round, or at its end
	once   sync.Once
}

// round counts one more round.
func (m *member) round() {
	m.rounds.Add(1)
	m.once.Do(func() { close(m.begun) })
}

func setting(t *testing.T, name string, usual int) int {
	t.Helper()
	number, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// Fifty clients read, change and watch at once: nothing ends, no read fails, each gets on, and no session is left.
func TestACrowdOfClients(t *testing.T) {
	hosts := setting(t, "DML_CROWD_HOSTS", crowdHosts)
	r := launch(t, sized(hosts))
	before := r.sessions()
	var members []*member
	for number := range crowd {
		members = append(members, r.member(number))
	}
	long := time.After(time.Duration(setting(t, "DML_CROWD_SECONDS", crowdSeconds)) * time.Second)
	allowed, end := context.WithCancel(r.ctx)
	var group sync.WaitGroup
	for _, m := range members {
		group.Go(func() {
			if err := errors.Join(m.work(allowed, r.ctx), m.c.Logout(r.ctx)); err != nil {
				t.Errorf("client %d: %v", m.number, err)
			}
			m.once.Do(func() { close(m.begun) })
		})
	}
	<-long
	for _, m := range members { // a machine that has much else to do is given more time
		<-m.begun
	}
	end()
	group.Wait()
	tell(t, members)
	if after := r.sessions(); after != before {
		t.Errorf("%d sessions before, %d after", before, after)
	}
	if _, machines, err := inventoryOf(r.ctx, r.c); err != nil || len(machines) != 4*hosts {
		t.Errorf("%d virtual machines, %v", len(machines), err)
	}
}

func (r *running) member(number int) *member {
	r.t.Helper()
	m := &member{number: number, c: r.client(), begun: make(chan struct{})}
	found, err := find.NewFinder(m.c.Client).HostSystemList(r.ctx, "/dc1/host/*/*")
	r.must(err)
	slices.SortFunc(found, func(a, b *object.HostSystem) int { return cmp.Compare(a.Name(), b.Name()) })
	m.hosts = found
	return m
}

func (r *running) sessions() int {
	r.t.Helper()
	var manager mo.SessionManager
	r.must(r.c.RetrieveOne(r.ctx, *r.c.ServiceContent.SessionManager, []string{"sessionList"}, &manager))
	return len(manager.SessionList)
}

// tell says how far the crowd came; a client that did nothing is a fault.
func tell(t *testing.T, members []*member) {
	t.Helper()
	rounds := map[string]int64{}
	for _, m := range members {
		rounds[m.kind()] += m.rounds.Load()
		if m.rounds.Load() == 0 {
			t.Errorf("client %d, one that %s, did not finish a round", m.number, m.kind())
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(rounds)) {
		t.Logf("%s: %d rounds", kind, rounds[kind])
	}
}

func (m *member) kind() string {
	switch {
	case m.number < readers:
		return "reads"
	case m.number < readers+watchers:
		return "watches"
	}
	return [...]string{"reconfigures", "powers", "moves", "clones", "sets hosts"}[m.number%5]
}

// work does rounds until it may no longer; what began is finished.
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

// own is a host on whose virtual machines no other client works at the same time.
func (m *member) own() *object.HostSystem { return m.hosts[m.number%len(m.hosts)] }

func (m *member) machine(ctx context.Context, kind string) (*object.VirtualMachine, error) {
	name := kind + m.own().Name()[len("esx"):len("esx0000")]
	return find.NewFinder(m.c.Client).VirtualMachine(ctx, "/dc1/vm/"+name)
}

func inventoryOf(ctx context.Context, c *govmomi.Client) ([]mo.HostSystem, []mo.VirtualMachine, error) {
	manager := view.NewManager(c.Client)
	all, err := manager.CreateContainerView(ctx, c.ServiceContent.RootFolder, nil, true)
	if err != nil {
		return nil, nil, err
	}
	var hosts []mo.HostSystem
	var machines []mo.VirtualMachine
	err = errors.Join(
		all.Retrieve(ctx, []string{"HostSystem"}, []string{"name", "runtime", "vm", "config.option"}, &hosts),
		all.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "runtime", "config", "summary"}, &machines))
	return hosts, machines, errors.Join(err, all.Destroy(ctx))
}

// read reads all hosts and virtual machines; one that leaves meanwhile fails nothing.
func (m *member) read(ctx context.Context) error {
	hosts, machines, err := inventoryOf(ctx, m.c)
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
	err = property.WaitForUpdates(ctx, property.DefaultCollector(m.c.Client), filter, func([]types.ObjectUpdate) bool {
		m.round()
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

// busy says whether another client was faster, as on any vCenter.
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

// clone clones, renames and removes.
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
