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
	rec.body = *bytes.NewBuffer(complete(wrapped.Value))
	rec.header.Del("Content-Length")
	return rec
}

// complete returns an answer with the empty fields and lists that vcsim leaves out.
// VMware: its description of the REST API, 8.0.2: CisTaggingCategoryModel, CisTaggingTagModel,
// CisTaggingTagAssociationObjectToTags.
func complete(value json.RawMessage) []byte {
	var answer any
	if json.Unmarshal(value, &answer) != nil {
		return value
	}
	switch x := answer.(type) {
	case nil:
		return []byte("[]")
	case map[string]any:
		for key, empty := range map[string]any{"description": "", "used_by": []any{}, "associable_types": []any{}} {
			if _, isTag := x["category_id"]; x[key] == nil && !(isTag && key == "associable_types") {
				x[key] = empty
			}
		}
	case []any:
		for _, one := range x {
			if found, ok := one.(map[string]any); ok && found["object_id"] != nil && found["tag_ids"] == nil {
				found["tag_ids"] = []any{}
			}
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // encoding decoded JSON cannot fail
	}
	return text
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
	return strings.HasSuffix(name, "action=validate") || strings.Contains(name, "action=list") ||
		strings.HasSuffix(name, "action=check") || strings.HasSuffix(name, "action=scan") ||
		strings.HasSuffix(name, "action=check-compatibility") || strings.HasSuffix(name, "action=find") ||
		strings.HasSuffix(name, "action=filter")
}
