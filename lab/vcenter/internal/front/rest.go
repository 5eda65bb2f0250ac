package front

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// serveREST counts REST calls and logs those that can change state.
func (f *Front) serveREST(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := r.Method + " " + r.URL.Path
	if action := r.URL.Query().Get("action"); action != "" {
		name += "?action=" + action
	}
	f.Log.Count(name)
	session := isSession(r)
	note := func(string) {}
	if !session && r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(name, "action=validate") {
		user, _ := f.sessions.user(r.Header.Get(restSessionHeader))
		note = f.Log.Add(Write{User: user, Method: name, Type: "REST", Object: r.URL.Path})
	}
	rec := f.forward(r, body)
	if session {
		f.learnREST(r, rec)
	}
	note(rec.result())
	rec.copyTo(w)
}

func isSession(r *http.Request) bool {
	return r.URL.Path == "/api/session" || r.URL.Path == "/rest/com/vmware/cis/session"
}

func (f *Front) learnREST(r *http.Request, rec *recorder) {
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
