// Package front is the HTTP handler in front of vcsim, which counts calls, logs writes, delays calls and injects
// faults.
//
// vcsim: encoding, login, tags below /rest.
package front

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/clock"
)

// DataCentre is the interface of the simulated data centre for the front.
type DataCentre interface {
	// Owner returns the entity to which an object belongs: itself, or the host of a host's manager.
	Owner(types.ManagedObjectReference) types.ManagedObjectReference
	// Name returns the name of an entity, or "" for other objects.
	Name(types.ManagedObjectReference) string
	// Task starts a task on an entity for a user; the front ends it.
	Task(on types.ManagedObjectReference, method, user string) Task
	// Clock returns the time of the data centre.
	Clock() *clock.Clock
	// EndSession removes a session.
	EndSession(key string)
	// NeverReturns makes the next reboot of a host its last.
	NeverReturns(host types.ManagedObjectReference)
	// Since reports whether the version of the vCenter is the named one or a later one.
	Since(version string) bool
	// JudgeCall judges a write of a client; a REST call has no object.
	JudgeCall(method string, on types.ManagedObjectReference, body []byte)
	// Vanish removes a virtual machine as another client might at any time.
	Vanish(machine string) error
	// MachineSize returns the memory in MB, the processors and the object of a virtual machine, "" without one.
	MachineSize(machine string) (int32, int32, string)
	// ServiceVersions returns the document with the versions of the API.
	ServiceVersions() string
	// OwnsREST reports whether ServeREST answers a REST path.
	OwnsREST(path string) bool
	ServeREST(http.ResponseWriter, *http.Request)
}

// Front is the HTTP handler in front of vcsim.
type Front struct {
	Log    *Log
	Faults Faults
	// Policies returns the storage policies.
	Policies   func() ([]Policy, error)
	storage    Storage
	dataCentre DataCentre
	next       http.Handler
	delay      time.Duration
	sessions   sessions
	restTurn   sync.Mutex
	// The virtual machines of templates in libraries, the items of update sessions, and the updates of items; all
	// with restTurn.
	templates, updates map[string]string
	versions           map[string]int
}

// New returns a front before vcsim's handler.
func New(dataCentre interface {
	DataCentre
	Storage
}, next http.Handler, delay time.Duration) *Front {
	return &Front{Log: NewLog(dataCentre.Clock()), dataCentre: dataCentre, storage: dataCentre, next: next,
		delay:    delay,
		sessions: sessions{users: map[string]string{}}, templates: map[string]string{}, updates: map[string]string{},
		versions: map[string]int{}}
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && (r.URL.Path == "/sdk" || r.URL.Path == "/sdk/vimService") {
		f.serveSOAP(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/rest/") {
		f.serveREST(w, r)
		return
	}
	if r.URL.Path == "/sdk/vimServiceVersions.xml" {
		answer(w, f.dataCentre.ServiceVersions())
		return
	}
	f.next.ServeHTTP(w, r)
}

func (f *Front) serveSOAP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.dataCentre.Clock().Sleep(f.delay)
	body = inbound(body)
	call, err := parseCall(body)
	if err != nil {
		answer(w, faultEnvelope("InvalidRequest", err.Error(), ""))
		return
	}
	f.Log.Count(call.Method)
	f.Log.By(r.UserAgent(), f.kindOfCall(call))
	for _, read := range call.properties(body) {
		f.Log.By(r.UserAgent(), read)
	}
	user, known := f.sessions.user(cookie(r))
	call.User = user
	if !known && !open(call, body) {
		answer(w, notAuthenticated(call.Object))
		return
	}
	f.dispatch(w, r, call, body)
}

// dispatch forwards the call, or applies a fault, and logs the result of a write.
func (f *Front) dispatch(w http.ResponseWriter, r *http.Request, call Call, body []byte) {
	note := func(string) {}
	if call.writes() {
		note = f.Log.Add(f.write(call))
		f.dataCentre.JudgeCall(call.Method, f.subject(call), nil)
	}
	owner := f.dataCentre.Owner(call.Object)
	if rule := f.Faults.firstMatch(call, owner, f.dataCentre.Name(owner)); rule != nil {
		note(f.strike(w, r, rule, call, body))
		return
	}
	note(f.pass(w, r, call, body))
}

// kindOfCall returns a call with the type of its entity, because privileges depend on the type.
func (f *Front) kindOfCall(call Call) string {
	if call.SOAP == "ExecuteSoap" {
		return call.Method
	}
	return f.dataCentre.Owner(call.Object).Type + "." + call.Method
}

func (f *Front) write(call Call) Write {
	owner := f.subject(call)
	w := Write{User: call.User, Method: call.Method, Type: call.Object.Type, Object: call.Object.Value,
		Name: f.dataCentre.Name(owner)}
	if call.SOAP == "ExecuteSoap" {
		w.Type, w.Object = owner.Type, owner.Value
	}
	return w
}

// subject returns the entity that a call concerns.
func (f *Front) subject(call Call) types.ManagedObjectReference {
	if call.About.Value != "" {
		return call.About
	}
	return f.dataCentre.Owner(call.Object)
}

// forward calls vcsim and stores its answer.
func (f *Front) forward(r *http.Request, body []byte) *recorder {
	again := r.WithContext(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	f.next.ServeHTTP(rec, again)
	answered := outbound(rec.body.Bytes())
	if f.dataCentre.Since("9.0.0.0") {
		answered = forVersion(r.Header.Get("SOAPAction"), answered)
	}
	rec.body = *bytes.NewBuffer(answered)
	return rec
}

// recorder stores an answer until it is sent or dropped. If a handler sets several statuses, the first one counts, as
// in net/http.
type recorder struct {
	header  http.Header
	status  int
	decided bool
	body    bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if !r.decided {
		r.status, r.decided = status, true
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.decided = true
	return r.body.Write(p)
}

func (r *recorder) result() string {
	if r.status >= http.StatusBadRequest {
		return "fault"
	}
	return "ok"
}

func (r *recorder) copyTo(w http.ResponseWriter) {
	for k, v := range r.header {
		w.Header()[k] = v
	}
	w.WriteHeader(r.status)
	if _, err := w.Write(r.body.Bytes()); err != nil {
		log.Printf("answer not delivered: %v", err)
	}
}

// answer sends a ready-made envelope; faults have status 500, as SOAP requires.
func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	if strings.Contains(text, "<soapenv:Fault>") {
		w.WriteHeader(http.StatusInternalServerError)
	}
	if _, err := io.WriteString(w, text); err != nil {
		log.Printf("answer not delivered: %v", err)
	}
}
