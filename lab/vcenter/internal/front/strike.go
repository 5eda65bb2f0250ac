package front

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// strike applies a fault to a call and returns the result for the log of writes.
// Ours: faults are injected by tests; their types and fields are those of the vSphere API.
func (f *Front) strike(w http.ResponseWriter, r *http.Request, rule *Fault, call Call, body []byte) string {
	carry := func() *recorder {
		rec := f.forward(r, body)
		f.sessions.learn(r, call, body, rec.header)
		return rec
	}
	if result, is := broken(w, r, rule, carry); is {
		return result
	}
	switch rule.Kind {
	case "expire_session":
		f.sessions.drop(cookie(r))
		f.dataCentre.EndSession(cookie(r))
		answer(w, notAuthenticated(call.Object))
		return "fault"
	case "slow":
		return f.slow(w, r, rule, call, body)
	case "deaf":
		return f.deaf(w, r, call, body)
	case "vanish":
		if err := f.dataCentre.Vanish(rule.Machine); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return "fault"
		}
		return f.pass(w, r, call, body)
	case "never_returns":
		f.dataCentre.NeverReturns(f.dataCentre.Owner(call.Object))
		return f.pass(w, r, call, body)
	}
	return f.fail(w, rule, call)
}

// fail answers with the SOAP fault of a rule, or with a task that ends with it.
func (f *Front) fail(w http.ResponseWriter, rule *Fault, call Call) string {
	fault, err := rule.vim(call)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // Add refuses such rules
		return "fault"
	}
	if rule.Kind == "task_fails" && call.returnsTask() {
		task := f.dataCentre.Task(call.Object, call.SOAP, call.User)
		task.Fail(fault, rule.words())
		answer(w, taskEnvelope(call.SOAP, task.Reference()))
		return "ok"
	}
	answer(w, encodeFault(fault, rule.words()))
	return "fault"
}

func (c Call) returnsTask() bool { return strings.HasSuffix(c.SOAP, "_Task") }

// pass forwards the call and sends its answer.
func (f *Front) pass(w http.ResponseWriter, r *http.Request, call Call, body []byte) string {
	forward := f.forward
	if strings.HasPrefix(call.SOAP, "WaitForUpdates") {
		forward = func(r *http.Request, body []byte) *recorder { return f.wait(r, call, body) }
	}
	rec := forward(r, body)
	f.sessions.learn(r, call, body, rec.header)
	if r.Context().Err() == nil {
		rec.copyTo(w)
	}
	return rec.result()
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := conn.Close(); err != nil {
		log.Printf("drop: %v", err)
	}
}

// deaf answers with success and changes nothing; a call that only reads has its answer.
func (f *Front) deaf(w http.ResponseWriter, r *http.Request, call Call, body []byte) string {
	switch {
	case !call.writes():
		return f.pass(w, r, call, body)
	case call.SOAP == "ExecuteSoap":
		// the executer provides the answer of the command
		return f.pass(w, r, call, bytes.Replace(body, []byte("vim.EsxCLI."), []byte("deaf.EsxCLI."), 1))
	case call.returnsTask():
		task := f.dataCentre.Task(call.Object, call.SOAP, call.User)
		task.Succeed()
		answer(w, taskEnvelope(call.SOAP, task.Reference()))
	case call.SOAP == "AddVirtualNic":
		answer(w, fmt.Sprintf(envelope,
			`<AddVirtualNicResponse xmlns="urn:vim25"><returnval>vmk9</returnval></AddVirtualNicResponse>`))
	default:
		answer(w, emptyEnvelope(call.SOAP))
	}
	return "ok"
}

// slow delays a call; if the call returns a task, the answer is immediate and the work starts later.
func (f *Front) slow(w http.ResponseWriter, r *http.Request, rule *Fault, call Call, body []byte) string {
	wait := time.Duration(rule.Seconds * float64(time.Second))
	if !call.returnsTask() {
		f.dataCentre.Clock().Sleep(wait)
		return f.pass(w, r, call, body)
	}
	outer := f.dataCentre.Task(call.Object, call.SOAP, call.User)
	request := r.Clone(r.Context())
	request = request.WithContext(detach())
	go func() {
		f.dataCentre.Clock().Sleep(wait)
		rec := f.forward(request, body)
		if inner, ok := taskOf(rec.body.Bytes()); ok {
			outer.Follow(inner)
			return
		}
		fault, words := faultOf(rec.body.Bytes())
		outer.Fail(fault, words)
	}()
	answer(w, taskEnvelope(call.SOAP, outer.Reference()))
	return "ok"
}

// encodeFault returns the envelope of a fault with all its properties.
func encodeFault(fault types.BaseMethodFault, words string) string {
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).Encode(fault); err != nil {
		panic(err) // encoding vSphere types cannot fail
	}
	kind, inner := typeName(fault), b.String()
	if open, end := strings.Index(inner, ">"), strings.LastIndex(inner, "</"); open >= 0 && end > open {
		inner = inner[open+1 : end]
	}
	return faultEnvelope(kind, words, inner)
}
