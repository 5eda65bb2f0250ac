package front

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// Forever is the count of a permanent fault.
const Forever = -1

// Fault is a rule: the calls that it matches and what happens to them.
type Fault struct {
	ID int `json:"id"`
	// Method is a vSphere method, an esxcli command as in the log of writes, or "PATCH /api/...".
	Method     string          `json:"method"`
	Type       string          `json:"type,omitempty"`
	Name       string          `json:"name,omitempty"`
	User       string          `json:"user,omitempty"`
	Skip       int             `json:"skip,omitempty"`
	Count      int             `json:"count"`
	Kind       string          `json:"kind"`
	Fault      string          `json:"fault,omitempty"`
	Message    string          `json:"message,omitempty"`
	Properties json.RawMessage `json:"properties,omitempty"`
	Status     int             `json:"status,omitempty"`
	Seconds    float64         `json:"seconds,omitempty"`
	After      bool            `json:"after,omitempty"`
	Machine    string          `json:"machine,omitempty"`
	Hits       int             `json:"hits"`
}

// kinds are the kinds of faults.
var kinds = map[string]bool{
	"fault": true, "task_fails": true, "drop": true, "expire_session": true, "slow": true, "deaf": true,
	"never_returns": true, "vanish": true, "half": true, "status": true, "silent": true,
}

// Faults are the active rules.
type Faults struct {
	mu    sync.Mutex
	next  int
	rules []*Fault
}

// Add activates a rule and returns its number.
func (f *Faults) Add(rule Fault) (int, error) {
	if rule.Method == "" {
		return 0, fmt.Errorf("a fault needs a method")
	}
	if !kinds[rule.Kind] {
		return 0, fmt.Errorf("unknown kind of fault %q", rule.Kind)
	}
	if rule.Kind == "fault" || rule.Kind == "task_fails" {
		if _, err := rule.vim(Call{}); err != nil {
			return 0, err
		}
	}
	if rule.Kind == "vanish" && rule.Machine == "" {
		return 0, fmt.Errorf("a fault of kind vanish needs a machine")
	}
	if rule.Kind == "slow" && rule.Seconds <= 0 {
		return 0, fmt.Errorf("a slow call needs seconds")
	}
	if rule.Count == 0 {
		rule.Count = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	rule.ID, rule.Hits = f.next, 0
	f.rules = append(f.rules, &rule)
	return rule.ID, nil
}

// List returns all rules, including those used up, until they are cleared.
func (f *Faults) List() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []Fault{}
	for _, r := range f.rules {
		out = append(out, *r)
	}
	return out
}

// Clear ends all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Remove ends one rule.
func (f *Faults) Remove(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.rules {
		if r.ID == id {
			f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
			return true
		}
	}
	return false
}

// firstMatch returns the first fault that a call matches and counts the match, or returns nil without one.
func (f *Faults) firstMatch(c Call, owner types.ManagedObjectReference, name string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Count == 0 || !r.matches(c, owner, name) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Count > 0 {
			r.Count--
		}
		r.Hits++
		struck := *r
		return &struck
	}
	return nil
}

func (f *Fault) matches(c Call, owner types.ManagedObjectReference, name string) bool {
	switch {
	case f.Method != "*" && f.Method != c.Method && f.Method != c.SOAP:
		return false
	case f.Type != "" && f.Type != c.Object.Type && f.Type != owner.Type:
		return false
	case f.User != "" && f.User != c.User:
		return false
	}
	return f.Name == "" || f.Name == "*" || f.Name == name
}

// vim returns the fault of a rule with its properties; NoPermission gets the object of the call.
func (f *Fault) vim(c Call) (types.BaseMethodFault, error) {
	kind := f.Fault
	if kind == "" {
		kind = "SystemError"
	}
	t, ok := types.TypeFunc()(kind)
	if !ok {
		return nil, fmt.Errorf("no vSphere type %q", kind)
	}
	fault, ok := reflect.New(t).Interface().(types.BaseMethodFault)
	if !ok {
		return nil, fmt.Errorf("%s is not a fault", kind)
	}
	if missing, ok := fault.(*types.NoPermission); ok {
		object := c.Object
		missing.Object, missing.PrivilegeId = &object, "Host.Config.Settings"
	}
	if len(f.Properties) > 0 {
		if err := json.Unmarshal(f.Properties, fault); err != nil {
			return nil, fmt.Errorf("properties of %s: %w", kind, err)
		}
	}
	return fault, nil
}

func (f *Fault) words() string {
	if f.Message != "" {
		return f.Message
	}
	return "Injected " + strings.TrimSuffix(f.Fault, "Fault") + "."
}
