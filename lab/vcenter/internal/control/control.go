// Package control is the plain HTTP interface, only on loopback, with which tests and the lab control the data
// centre.
package control

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"time"

	"dml.vsphere/lab/vcenter/internal/front"
	"dml.vsphere/lab/vcenter/internal/vcenter"
)

// Control answers the control interface.
type Control struct {
	front   *front.Front
	vcenter *vcenter.Server
	restart func(pause time.Duration) error
}

// New returns the handler of the control interface.
func New(f *front.Front, w *vcenter.Server, restart func(time.Duration) error) http.Handler {
	c := &Control{front: f, vcenter: w, restart: restart}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /writes", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Log.Writes()) })
	mux.HandleFunc("DELETE /writes", func(w http.ResponseWriter, _ *http.Request) { f.Log.ClearWrites(); done(w) })
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Log.Calls()) })
	mux.HandleFunc("DELETE /calls", func(w http.ResponseWriter, _ *http.Request) { f.Log.ClearCalls(); done(w) })
	mux.HandleFunc("GET /callers", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Log.Callers()) })
	mux.HandleFunc("GET /exchanges", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Log.Exchanges()) })
	mux.HandleFunc("GET /violations", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, c.vcenter.Judge.Violations())
	})
	mux.HandleFunc("POST /faults", c.addFault)
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, f.Faults.List()) })
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) { f.Faults.Clear(); done(w) })
	mux.HandleFunc("DELETE /faults/{id}", c.removeFault)
	mux.HandleFunc("POST /restart", c.restartServer)
	mux.HandleFunc("PUT /clock", c.setClock)
	mux.HandleFunc("POST /clock", c.letTimePass)
	mux.HandleFunc("GET /hosts", c.hosts)
	mux.HandleFunc("PATCH /hosts/{name}", c.patchHost)
	mux.HandleFunc("GET /clusters/{name}", c.cluster)
	mux.HandleFunc("PATCH /clusters/{name}", c.patchCluster)
	mux.HandleFunc("GET /hosts/{name}", c.host)
	mux.HandleFunc("GET /external", c.external)
	mux.HandleFunc("PUT /external", c.startExternalMode)
	mux.HandleFunc("DELETE /external", c.endExternalMode)
	mux.HandleFunc("POST /external/{id}", c.updateOrder)
	mux.HandleFunc("GET /vms/{name}", c.machine)
	mux.HandleFunc("PUT /vms/{name}/guest", c.guest)
	mux.HandleFunc("POST /vms/{name}/drs", c.moveByDRS)
	return mux
}

func (c *Control) hosts(w http.ResponseWriter, _ *http.Request) { reply(w, c.vcenter.HostNames()) }

func (c *Control) host(w http.ResponseWriter, r *http.Request) {
	h, ok := c.vcenter.HostNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such host: "+r.PathValue("name"))
		return
	}
	reply(w, h.Report())
}

// restartServer restarts vCenter with a pause, and answers when the server accepts connections again.
func (c *Control) restartServer(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Seconds float64 `json:"seconds"`
	}
	if !read(w, r, &asked) {
		return
	}
	if err := c.restart(time.Duration(asked.Seconds * float64(time.Second))); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	done(w)
}

// letTimePass lets time pass at once: what waits for it by then ends, such as a boot or a move.
func (c *Control) letTimePass(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Seconds float64 `json:"seconds"`
	}
	if !read(w, r, &asked) {
		return
	}
	if asked.Seconds < 0 {
		refuse(w, http.StatusBadRequest, "time does not go back; PUT sets the clock of the server")
		return
	}
	c.vcenter.Clock().Advance(time.Duration(asked.Seconds * float64(time.Second)))
	done(w)
}

// setClock sets the clock of the server by an offset from the time of the data centre.
func (c *Control) setClock(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		OffsetSeconds float64 `json:"offset_seconds"`
	}
	if read(w, r, &asked) {
		c.vcenter.SetClock(time.Duration(asked.OffsetSeconds * float64(time.Second)))
		done(w)
	}
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Printf("control answer not delivered: %v", err)
	}
}

func done(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(map[string]string{"error": why}); err != nil {
		log.Printf("control answer not delivered: %v", err)
	}
}

// read decodes a request, and refuses unknown keys, so that a misspelt key is not ignored.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}
