package front

import (
	"encoding/json"
	"net/http"
)

const (
	newSession = "/api/session"
	oldSession = "/rest/com/vmware/cis/session"
)

// apiSession answers /api/session, which vcsim lacks, with the older path: the answer is only the token.
// VMware: its description of the REST API, 8.0.2, /api/session: 201 with the token, 204 at the logout.
func (f *Front) apiSession(r *http.Request, body []byte) *recorder {
	old := r.Clone(r.Context())
	old.URL.Path, old.RequestURI = oldSession, oldSession
	f.restTurn.Lock()
	defer f.restTurn.Unlock()
	rec := f.forward(old, body)
	if r.Method == http.MethodDelete && rec.result() == "ok" {
		rec.status = http.StatusNoContent
		rec.body.Reset()
		rec.header.Del("Content-Length")
		return rec
	}
	var wrapped struct{ Value string }
	if r.Method != http.MethodPost || rec.result() != "ok" || json.Unmarshal(rec.body.Bytes(), &wrapped) != nil {
		return rec
	}
	token, err := json.Marshal(wrapped.Value)
	if err != nil {
		panic(err) // encoding a string cannot fail
	}
	rec.body.Reset()
	rec.body.Write(token)
	rec.header.Del("Content-Length")
	rec.status = http.StatusCreated
	return rec
}
