package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/clock"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// External sends orders for virtual machines to a listener; the listener ends the vSphere tasks.
type External struct {
	mu       sync.Mutex
	listener string
	ops      []string
	next     int
	waiting  map[string]*order
}

// order is an order that the listener has not ended.
type order struct {
	Order
	updates chan OrderUpdate
}

// Order is what the listener receives.
type Order struct {
	ID     string `json:"id"`
	Op     string `json:"op"`
	VM     string `json:"vm"`
	MOID   string `json:"vm_moid"`
	Source string `json:"source"`
	Target string `json:"target"`
}

// OrderUpdate is what the listener reports on an order.
type OrderUpdate struct {
	Progress *int32 `json:"progress"`
	Done     bool   `json:"done"`
	Failed   string `json:"failed"`
}

// Ops are the operations that a listener can receive.
var Ops = []string{"Relocate", "PowerOn", "PowerOff", "ShutdownGuest", "Reset", "Destroy"}

// Listen sets the listener; "" ends external mode.
func (e *External) Listen(url string, ops []string) error {
	for _, op := range ops {
		if !slices.Contains(Ops, op) {
			return fmt.Errorf("no operation %q: %v", op, Ops)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listener, e.ops = url, ops
	return nil
}

// State returns the listener and the orders that it has not ended.
func (e *External) State() (listener string, ops []string, orders []Order) {
	e.mu.Lock()
	defer e.mu.Unlock()
	orders = []Order{}
	for _, o := range e.waiting {
		orders = append(orders, o.Order)
	}
	sort.Slice(orders, func(i, j int) bool { return orders[i].ID < orders[j].ID })
	return e.listener, e.ops, orders
}

// Report processes the listener's report on an order.
func (e *External) Report(id string, n OrderUpdate) error {
	e.mu.Lock()
	o, ok := e.waiting[id]
	e.mu.Unlock()
	if !ok {
		return fmt.Errorf("no order %q is open", id)
	}
	select {
	case o.updates <- n:
		return nil
	case <-clock.Machine.After(5 * time.Second):
		return fmt.Errorf("order %q accepts no more reports", id)
	}
}

// dispatch sends an order to the listener and waits for its end, or returns false if the listener does not handle the
// operation.
// Ours: external mode lets virtual machines of another hypervisor follow the simulated vCenter.
func (e *External) dispatch(j *vcsim.Job, o Order) (bool, vcsim.Fault) {
	e.mu.Lock()
	url := e.listener
	if url == "" || !slices.Contains(e.ops, o.Op) {
		e.mu.Unlock()
		return false, nil
	}
	e.next++
	o.ID = fmt.Sprintf("order-%d", e.next)
	open := &order{Order: o, updates: make(chan OrderUpdate, 16)}
	e.waiting[o.ID] = open
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.waiting, o.ID)
		e.mu.Unlock()
	}()
	if err := post(url, o); err != nil {
		j.Words = fmt.Sprintf("The lab's listener did not take %s of %s: %v", o.Op, o.VM, err)
		return true, new(types.SystemError)
	}
	return true, follow(j, open.updates)
}

func post(url string, o Order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 30 * time.Second}
	res, err := client.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the listener answered %s", res.Status)
	}
	return nil
}

// follow waits for the end of an order.
func follow(j *vcsim.Job, news <-chan OrderUpdate) vcsim.Fault {
	for {
		select {
		case n := <-news:
			switch {
			case n.Failed != "":
				j.Words = n.Failed
				return new(types.SystemError)
			case n.Done:
				return nil
			case n.Progress != nil:
				j.Progress(*n.Progress)
			}
		case <-clock.Machine.After(vcsim.Poll):
			if j.Cancelled() {
				return new(types.RequestCanceled)
			}
		}
	}
}
