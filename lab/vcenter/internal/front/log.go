package front

import (
	"maps"
	"sync"
	"time"

	"dml.vsphere/lab/vcenter/internal/clock"
)

// Write is one call that could change state.
type Write struct {
	Seq    int       `json:"seq"`
	Time   time.Time `json:"time"`
	User   string    `json:"user"`
	Method string    `json:"method"`
	Type   string    `json:"type"`
	Object string    `json:"object"`
	Name   string    `json:"name"`
	Result string    `json:"result"` // pending, ok, fault or dropped
}

// Exchange is a call of the REST API and its answer.
type Exchange struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body"`
	Status int    `json:"status"`
	Answer string `json:"answer"`
}

// Log keeps the writes and counts all calls.
type Log struct {
	clock   *clock.Clock
	mu      sync.Mutex
	seq     int
	writes  []Write
	calls   map[string]int
	callers map[string]map[string]int
	rest    []Exchange
}

// NewLog returns an empty log.
func NewLog(of *clock.Clock) *Log {
	return &Log{clock: of, calls: map[string]int{}, callers: map[string]map[string]int{}}
}

// Count counts one call of a method.
func (l *Log) Count(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[method]++
}

// By counts one call of a program, with the type of the object.
func (l *Log) By(caller, call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers[caller] == nil {
		l.callers[caller] = map[string]int{}
	}
	l.callers[caller][call]++
}

// Callers returns the calls of each program since the start, which are never cleared.
func (l *Log) Callers() map[string]map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]map[string]int{}
	for caller, calls := range l.callers {
		out[caller] = maps.Clone(calls)
	}
	return out
}

// Exchanged stores a call of the REST API.
func (l *Log) Exchanged(one Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, one)
}

// Exchanges returns the calls below /api/ since the start, without those that a fault changed.
func (l *Log) Exchanges() []Exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Exchange{}, l.rest...)
}

// Add stores a write and returns a function that sets its result.
func (l *Log) Add(w Write) func(result string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	w.Seq, w.Time, w.Result = l.seq, l.clock.Now().UTC(), "pending"
	l.writes = append(l.writes, w)
	return func(result string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range l.writes {
			if l.writes[i].Seq == w.Seq {
				l.writes[i].Result = result
			}
		}
	}
}

// Writes returns the writes since the last ClearWrites, oldest first.
func (l *Log) Writes() []Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Write{}, l.writes...)
}

// ClearWrites removes the writes; the numbering continues.
func (l *Log) ClearWrites() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = nil
}

// Calls returns the number of calls of each method since the last ClearCalls.
func (l *Log) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for k, v := range l.calls {
		out[k] = v
	}
	return out
}

// ClearCalls resets the counters.
func (l *Log) ClearCalls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = map[string]int{}
}
