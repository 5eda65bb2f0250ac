package front

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

const (
	newTagging = "/api/cis/tagging/"
	oldTagging = "/rest/com/vmware/cis/tagging/"
)

// apiTagging answers reads below /api/cis/tagging with the older paths, which vcsim has: identifiers follow "id:",
// actions have a tilde, and answers are wrapped in a value.
// VMware: vSphere Automation API reference, /api/cis/tagging and /rest/com/vmware/cis/tagging.
func (f *Front) apiTagging(r *http.Request, body []byte) *recorder {
	old := olderTagging(r, body)
	f.restTurn.Lock()
	defer f.restTurn.Unlock()
	rec := f.forward(old, body)
	var wrapped struct{ Value json.RawMessage }
	if rec.result() != "ok" || json.Unmarshal(rec.body.Bytes(), &wrapped) != nil {
		return rec
	}
	value := wrapped.Value
	if string(value) == "null" {
		value = json.RawMessage("[]")
	}
	rec.body = *bytes.NewBuffer(value)
	rec.header.Del("Content-Length")
	return rec
}

// olderTagging returns the request for the older path.
func olderTagging(r *http.Request, body []byte) *http.Request {
	old := r.Clone(r.Context())
	area, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, newTagging), "/")
	action := r.URL.Query().Get("action")
	var asked struct {
		CategoryID string `json:"category_id"`
	}
	if action == "list-tags-for-category" && json.Unmarshal(body, &asked) == nil {
		id = asked.CategoryID
	}
	old.URL.Path, old.URL.RawPath, old.URL.RawQuery = oldTagging+area, "", ""
	if id != "" {
		old.URL.Path += "/id:" + id
	}
	if action != "" {
		old.URL.RawQuery = "~action=" + action
	}
	old.RequestURI = old.URL.RequestURI()
	return old
}

// onlyReads reports whether a REST call with a body only reads.
func onlyReads(name string) bool {
	return strings.HasSuffix(name, "action=validate") || strings.Contains(name, "action=list-") ||
		strings.HasSuffix(name, "action=check") || strings.HasSuffix(name, "action=scan")
}
