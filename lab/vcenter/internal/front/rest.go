package front

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// serveREST counts REST calls and logs those that can change state.
func (f *Front) serveREST(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := r.Method + " " + r.URL.Path
	for _, key := range []string{"action", "~action"} {
		if action := r.URL.Query().Get(key); action != "" {
			name += "?" + key + "=" + action
		}
	}
	f.Log.Count(name)
	f.Log.By(r.UserAgent(), name)
	session := isSession(r)
	note := func(string) {}
	if !session && r.Method != http.MethodGet && r.Method != http.MethodHead && !onlyReads(name) {
		user, _ := f.sessions.user(r.Header.Get(restSessionHeader))
		note = f.Log.Add(Write{User: user, Method: name, Type: "REST", Object: r.URL.Path})
		f.dataCentre.JudgeCall(name, types.ManagedObjectReference{}, body)
	}
	if rule := f.Faults.firstMatch(Call{Method: name, SOAP: name}, types.ManagedObjectReference{}, ""); rule != nil &&
		!f.strikeREST(w, r, rule, body) {
		note("fault")
		return
	}
	rec := f.rest(r, body)
	if session {
		f.learnREST(r, rec)
	}
	note(rec.result())
	if strings.HasPrefix(r.URL.Path, "/api/") {
		f.Log.Exchanged(Exchange{Method: r.Method, Path: r.URL.RequestURI(), Body: string(body), Status: rec.status,
			Answer: rec.body.String()})
	}
	rec.copyTo(w)
}

// rest answers the REST calls of image-managed clusters for authenticated sessions; vcsim answers all others. vcsim
// keeps REST state without locks, so its calls run one after another.
func (f *Front) rest(r *http.Request, body []byte) *recorder {
	if r.URL.Path == newSession {
		return f.apiSession(r, body)
	}
	if strings.HasPrefix(r.URL.Path, newTagging) {
		return f.apiTagging(r, body)
	}
	if old, olderBody, is := olderLibrary(r, body); is {
		return f.apiLibrary(old, olderBody)
	}
	if strings.HasPrefix(r.URL.Path, oldItems) || strings.HasPrefix(r.URL.Path, oldTemplates) ||
		strings.HasPrefix(r.URL.Path, oldOVF) {
		return f.library(r, body)
	}
	if isPolicies(r.URL.Path) {
		return f.apiPolicies(r, body)
	}
	if !f.dataCentre.OwnsREST(r.URL.Path) {
		f.restTurn.Lock()
		defer f.restTurn.Unlock()
		return f.forward(r, body)
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	user, known := f.sessions.user(r.Header.Get(restSessionHeader))
	if !known {
		rec.header.Set("Content-Type", "application/json")
		rec.status = http.StatusUnauthorized
		rec.body.WriteString(
			`{"error_type":"UNAUTHENTICATED","messages":[` +
				`{"id":"lab.rest","default_message":"The session is not authenticated.","args":[]}]}`)
		return rec
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.SetBasicAuth(user, "") // tasks show who started them
	f.dataCentre.ServeREST(rec, r)
	return rec
}

func isSession(r *http.Request) bool {
	return r.URL.Path == newSession || r.URL.Path == oldSession
}

func (f *Front) learnREST(r *http.Request, rec *recorder) {
	if r.Method == http.MethodDelete {
		f.sessions.drop(r.Header.Get(restSessionHeader))
	}
	if r.Method != http.MethodPost || rec.result() != "ok" {
		return
	}
	user, _, ok := r.BasicAuth()
	if !ok {
		user, _ = f.sessions.user(cookie(r))
	}
	text := bytes.TrimSpace(rec.body.Bytes())
	var token string
	if json.Unmarshal(text, &token) == nil {
		f.sessions.put(token, user)
		return
	}
	var wrapped struct{ Value string }
	if json.Unmarshal(text, &wrapped) == nil && wrapped.Value != "" {
		f.sessions.put(wrapped.Value, user)
	}
}

// strikeREST applies a fault to a REST call, and reports whether the call continues.
func (f *Front) strikeREST(w http.ResponseWriter, r *http.Request, rule *Fault, body []byte) bool {
	if rule.Kind == "slow" {
		f.dataCentre.Clock().Sleep(time.Duration(rule.Seconds * float64(time.Second)))
		return true
	}
	if _, is := broken(w, r, rule, func() *recorder { return f.rest(r, body) }); is {
		return false
	}
	refuseREST(w, rule)
	return false
}

// refuseREST answers with an error of the REST API.
func refuseREST(w http.ResponseWriter, rule *Fault) {
	status := rule.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	kind := map[int]string{401: "UNAUTHENTICATED", 403: "UNAUTHORIZED", 404: "NOT_FOUND",
		503: "SERVICE_UNAVAILABLE"}[status]
	if kind == "" {
		kind = "ERROR"
	}
	message := map[string]any{"error_type": kind,
		"messages": []map[string]any{{"id": "lab.injected", "default_message": rule.words(), "args": []string{}}}}
	if err := json.NewEncoder(w).Encode(message); err != nil {
		log.Printf("answer not delivered: %v", err)
	}
}
