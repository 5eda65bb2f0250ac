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
	"github.com/vmware/govmomi/vim25/mo"
)

// The duration of the crowd test and its number of hosts; DML_CROWD_SECONDS and DML_CROWD_HOSTS override them (make
// crowd).
const crowdSeconds, crowdHosts = 3, 6

// crowd is the number of clients: readers, watchers, and the others, which make changes.
const crowd, readers, watchers = 50, 18, 10

// lastName is the name that the last change gives to a virtual machine, patience the time in which watchers must see
// it.
const lastName, patience = "renamed at the end", 2 * time.Minute

// member is one client of a crowd, with a separate session.
type member struct {
	number  int
	c       *govmomi.Client
	hosts   []*object.HostSystem
	rounds  atomic.Int64
	started chan struct{} // closed after the first round, or at the end
	once    sync.Once
	heard   chan struct{} // closed when a watcher sees the last change
}

// round counts one more round.
func (m *member) round() {
	m.rounds.Add(1)
	m.once.Do(func() { close(m.started) })
}

func setting(t *testing.T, name string, usual int) int {
	t.Helper()
	number, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// Fifty clients read, change and watch at the same time: none ends early, no read fails, each makes progress, and no
// session remains.
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
	watched, leave := context.WithCancel(r.ctx)
	shown, hide := context.WithCancel(r.ctx)
	defer hide()
	go show(shown, members)
	var group, watching sync.WaitGroup
	for _, m := range members {
		belongs, until := &group, allowed
		if m.kind() == "watches" {
			belongs, until = &watching, watched
		}
		belongs.Go(func() {
			if err := errors.Join(m.work(until, r.ctx), m.c.Logout(r.ctx)); err != nil {
				t.Errorf("client %d: %v", m.number, err)
			}
			m.once.Do(func() { close(m.started) })
		})
	}
	<-long
	for _, m := range members { // more time for a busy machine
		<-m.started
	}
	end()
	group.Wait()
	r.lastChange(members)
	leave()
	watching.Wait()
	tell(t, members)
	if after := r.sessions(); after != before {
		t.Errorf("%d sessions before, %d after", before, after)
	}
	if _, machines, err := inventoryOf(r.ctx, r.c, shownOf); err != nil || len(machines) != 4*hosts {
		t.Errorf("%d virtual machines, %v", len(machines), err)
	}
}

func (r *running) member(number int) *member {
	r.t.Helper()
	m := &member{number: number, c: r.client(), started: make(chan struct{}), heard: make(chan struct{})}
	found, err := find.NewFinder(m.c.Client).HostSystemList(r.ctx, "/dc1/host/*/*")
	r.must(err)
	slices.SortFunc(found, func(a, b *object.HostSystem) int { return cmp.Compare(a.Name(), b.Name()) })
	m.hosts = found
	return m
}

// lastChange renames a virtual machine; a watcher that fell behind while others worked does not see it in time.
func (r *running) lastChange(members []*member) {
	r.t.Helper()
	machine, err := (&member{c: r.c, hosts: members[0].hosts}).machine(r.ctx, "worker")
	r.must(err)
	task, err := machine.Rename(r.ctx, lastName)
	_, err = end(r.ctx, task, err)
	r.must(err)
	late := time.After(patience)
	for _, m := range members {
		if m.kind() != "watches" {
			continue
		}
		select {
		case <-m.heard:
		case <-late:
			r.t.Errorf("client %d watches and did not hear of the last change within %s", m.number, patience)
			return
		}
	}
}

func (r *running) sessions() int {
	r.t.Helper()
	var manager mo.SessionManager
	r.must(r.c.RetrieveOne(r.ctx, *r.c.ServiceContent.SessionManager, []string{"sessionList"}, &manager))
	return len(manager.SessionList)
}

// show logs the progress of the crowd every half minute.
func show(ctx context.Context, members []*member) {
	began := time.Now()
	for each := time.NewTicker(30 * time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-each.C:
		}
		rounds, idle := counted(members)
		line := fmt.Sprintf("... %.0f s, clients without a round yet: %d", time.Since(began).Seconds(), len(idle))
		for _, kind := range slices.Sorted(maps.Keys(rounds)) {
			line += fmt.Sprintf("; %s: %d", kind, rounds[kind])
		}
		fmt.Println(line)
	}
}

// counted returns the rounds of each kind of client, and the clients without a round.
func counted(members []*member) (map[string]int64, []*member) {
	rounds, idle := map[string]int64{}, []*member(nil)
	for _, m := range members {
		rounds[m.kind()] += m.rounds.Load()
		if m.rounds.Load() == 0 {
			idle = append(idle, m)
		}
	}
	return rounds, idle
}

// tell logs the rounds of the crowd; a client without a round is an error.
func tell(t *testing.T, members []*member) {
	t.Helper()
	rounds, idle := counted(members)
	for _, m := range idle {
		t.Errorf("client %d, one that %s, did not finish a round", m.number, m.kind())
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
