package world

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strconv"
)

// draft is a change of a cluster's image that is not committed yet; a cluster has one at most.
type draft struct {
	id         string
	components map[string]string
}

func itoa(n int) string { return strconv.Itoa(n) }

// imageOf is a cluster's image.
func (w *World) imageOf(cluster ref) map[string]any {
	return w.software(w.clusterNow(cluster).Components)
}

func (w *World) software(components map[string]string) map[string]any {
	base := w.desc.Version + "-0.0." + w.desc.Build
	shown := map[string]any{}
	for name, version := range components {
		shown[name] = map[string]any{"version": version, "details": map[string]any{"display_name": name, "display_version": version, "vendor": "NVIDIA"}}
	}
	return map[string]any{
		"base_image": map[string]any{"version": base, "details": map[string]any{"display_name": "ESXi", "display_version": w.desc.Version, "release_date": installDate + "T00:00:00.000Z"}},
		"components": shown, "solutions": map[string]any{},
	}
}

// compliance says which hosts run what their cluster's image wants.
func (w *World) compliance(cluster ref) map[string]any {
	good, bad := []string{}, []string{}
	w.mu.Lock()
	hosts := slices.Collect(maps.Values(w.hosts))
	w.mu.Unlock()
	for _, h := range hosts {
		var parent ref
		ctx := w.context()
		ctx.WithLock(h.entity, func() { parent = *h.entity.Parent })
		if parent != cluster {
			continue
		}
		if h.follows(w.clusterNow(cluster).Components) {
			good = append(good, h.self.Value)
		} else {
			bad = append(bad, h.self.Value)
		}
	}
	sort.Strings(good)
	sort.Strings(bad)
	out := map[string]any{"status": "COMPLIANT", "impact": "NO_IMPACT", "compliant_hosts": good, "non_compliant_hosts": bad}
	if len(bad) > 0 {
		out["status"], out["impact"] = "NON_COMPLIANT", "REBOOT_REQUIRED"
	}
	return out
}

// follows says whether the host runs exactly the vendor components of an image.
func (h *Host) follows(components map[string]string) bool {
	running, _ := h.images()
	seen := map[string]string{}
	for _, v := range running {
		if v.Component != "" && v.Component != "ESXi" {
			seen[v.Component] = v.Version
		}
	}
	return maps.Equal(seen, components)
}

func (w *World) restDrafts(out http.ResponseWriter, r *http.Request, cluster ref, words []string) {
	state := w.clusterState(cluster)
	w.mu.Lock()
	open := state.draft
	w.mu.Unlock()
	switch {
	case len(words) == 0 && r.Method == http.MethodPost:
		w.openDraft(out, state)
	case len(words) == 0:
		list := map[string]any{}
		if open != nil {
			list[open.id] = map[string]any{"owner": "lab", "status": "VALID"}
		}
		restReply(out, list)
	case open == nil || open.id != words[0]:
		restError(out, http.StatusNotFound, "NOT_FOUND", "The draft '"+words[0]+"' does not exist.")
	case len(words) == 1 && r.Method == http.MethodDelete:
		w.closeDraft(state)
		out.WriteHeader(http.StatusNoContent)
	case len(words) == 1 && r.Method == http.MethodPost:
		w.endDraft(out, r.URL.Query().Get("action"), state, open)
	case len(words) == 1:
		restReply(out, map[string]any{"metadata": map[string]any{"owner": "lab", "status": "VALID"}, "software": w.software(open.components)})
	case len(words) >= 3 && words[1] == "software" && words[2] == "components":
		w.draftComponents(out, r, open, words[3:])
	default:
		restError(out, http.StatusNotFound, "NOT_FOUND", r.URL.Path+" is not simulated.")
	}
}

func (w *World) openDraft(out http.ResponseWriter, state *clusterState) {
	w.mu.Lock()
	busy := state.draft != nil
	id := ""
	if !busy {
		w.restCounter++
		id = itoa(w.restCounter)
		state.draft = &draft{id: id, components: maps.Clone(state.Components)}
		if state.draft.components == nil {
			state.draft.components = map[string]string{}
		}
	}
	w.mu.Unlock()
	if busy {
		restError(out, http.StatusBadRequest, "NOT_ALLOWED_IN_CURRENT_STATE", "Another draft of the cluster's image is open.")
		return
	}
	restReply(out, id)
}

func (w *World) closeDraft(state *clusterState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state.draft = nil
}

// endDraft validates a draft or commits it; both are tasks.
func (w *World) endDraft(out http.ResponseWriter, action string, state *clusterState, open *draft) {
	missing := w.missing(open)
	switch action {
	case "validate":
		errors := []any{}
		for _, text := range missing {
			errors = append(errors, map[string]any{"id": "lab.component", "time": "2026-01-15T00:00:00.000Z", "message": restMessage("lab.component", text)})
		}
		restReply(out, w.restDone(map[string]any{"notifications": map[string]any{"errors": errors, "warnings": []any{}, "infos": []any{}}}, ""))
	case "commit":
		if len(missing) > 0 {
			restReply(out, w.restDone(nil, missing[0]))
			return
		}
		w.mu.Lock()
		state.Components, state.draft = open.components, nil
		w.mu.Unlock()
		restReply(out, w.restDone(open.id, ""))
	default:
		restError(out, http.StatusBadRequest, "UNSUPPORTED", "The action '"+action+"' is not simulated.")
	}
}

// missing says what a draft wants and no depot holds.
func (w *World) missing(open *draft) []string {
	held := w.depotComponents()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(open.components)) {
		if !slices.Contains(held[name], open.components[name]) {
			out = append(out, "Component "+name+" with version "+open.components[name]+" cannot be found in depot.")
		}
	}
	return out
}

// componentChange is a change of a draft's components.
type componentChange struct {
	Version string            `json:"version"`
	Set     map[string]string `json:"components_to_set"`
	Delete  []string          `json:"components_to_delete"`
}

// readChange reads the change that a request asks for; one component may be named by the path.
func readChange(r *http.Request, words []string) (componentChange, error) {
	var c componentChange
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			return c, err
		}
	}
	if len(words) > 0 && r.Method == http.MethodPut {
		c.Set = map[string]string{words[0]: c.Version}
	}
	if len(words) > 0 && r.Method == http.MethodDelete {
		c.Delete = []string{words[0]}
	}
	return c, nil
}

// draftComponents reads and changes the components of a draft, one by one or many at once.
func (w *World) draftComponents(out http.ResponseWriter, r *http.Request, open *draft, words []string) {
	c, err := readChange(r, words)
	if err != nil {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	w.mu.Lock()
	next := maps.Clone(open.components)
	maps.Copy(next, c.Set)
	for _, name := range c.Delete {
		delete(next, name)
	}
	open.components = next
	w.mu.Unlock()
	if r.Method != http.MethodGet {
		out.WriteHeader(http.StatusNoContent)
		return
	}
	w.showComponents(out, next, words)
}

func (w *World) showComponents(out http.ResponseWriter, components map[string]string, words []string) {
	shown := w.software(components)["components"].(map[string]any)
	if len(words) == 0 {
		restReply(out, shown)
		return
	}
	one, ok := shown[words[0]]
	if !ok {
		restError(out, http.StatusNotFound, "NOT_FOUND", "The draft has no component '"+words[0]+"'.")
		return
	}
	restReply(out, one)
}
