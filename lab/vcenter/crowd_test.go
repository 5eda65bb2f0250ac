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

// The crowd works so long on so many hosts, unless DML_CROWD_SECONDS and DML_CROWD_HOSTS say otherwise (make crowd).
const crowdSeconds, crowdHosts = 3, 6

// clients of a crowd; the others of the 50 change.
const crowd, readers, watchers = 50, 18, 10

// What the last change names a virtual machine, and how long watchers may take to hear of it.
const lastName, patience = "renamed at the end", 2 * time.Minute

// member is one client of a crowd, with a session of its own.
type member struct {
	number int
	c      *govmomi.Client
	hosts  []*object.HostSystem
	rounds atomic.Int64
	begun  chan struct{} // closed after its first round, or at its end
	once   sync.Once
	heard  chan struct{} // closed when a watcher hears of the last change
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
			m.once.Do(func() { close(m.begun) })
		})
	}
	<-long
	for _, m := range members { // a machine that has much else to do is given more time
		<-m.begun
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
	m := &member{number: number, c: r.client(), begun: make(chan struct{}), heard: make(chan struct{})}
	found, err := find.NewFinder(m.c.Client).HostSystemList(r.ctx, "/dc1/host/*/*")
	r.must(err)
	slices.SortFunc(found, func(a, b *object.HostSystem) int { return cmp.Compare(a.Name(), b.Name()) })
	m.hosts = found
	return m
}

// lastChange renames a virtual machine; a watcher that fell behind while others worked does not hear of it in time.
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

// show says every half minute how far the crowd is.
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

// counted are the rounds of each kind of client, and the clients that have done none.
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

// tell says how far the crowd came; a client that did nothing is a fault.
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
