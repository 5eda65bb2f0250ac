package lifecycle

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// imageDraft is an uncommitted change of a cluster's image; a cluster has at most one.
type imageDraft struct {
	id         string
	components map[string]string
	base       string
	addOn      cluster.AddOn
}

// imageOf returns a cluster's image.
func (s *Service) imageOf(cluster vcsim.Ref) map[string]any {
	state := s.clusters.State(cluster)
	return s.software(imageDraft{components: state.Components, base: state.BaseImage, addOn: state.AddOn})
}

// baseImage returns the version of the base image of the description.
func (s *Service) baseImage() string {
	return s.sim.Description.Version + "-0.0." + s.sim.Description.Build
}

func (s *Service) software(image imageDraft) map[string]any {
	base, components := cmp.Or(image.base, s.baseImage()), image.components
	shown := map[string]any{}
	for name, version := range components {
		shown[name] = map[string]any{"version": version,
			"details": map[string]any{"display_name": name, "display_version": version, "vendor": "NVIDIA"}}
	}
	answer := map[string]any{
		"base_image": map[string]any{"version": base,
			"details": map[string]any{"display_name": "ESXi", "display_version": s.sim.Description.Version,
				"release_date": software.InstallDate + "T00:00:00.000Z"}},
		"components": shown, "solutions": map[string]any{},
	}
	if image.addOn.Name != "" {
		answer["add_on"] = map[string]any{"name": image.addOn.Name, "version": image.addOn.Version}
	}
	return answer
}

// compliance compares the running packages of each host with the image of the cluster.
// VMware: vSphere Automation SDK, com.vmware.esx.settings.ClusterCompliance and HostCompliance: status, impact, scan
// time, the hosts of each status.
// Ours: the hosts are compared when the compliance is read.
func (s *Service) compliance(of vcsim.Ref) map[string]any {
	good, bad, info, hosts := []string{}, []string{}, map[string]any{}, map[string]any{}
	d := s.desired(of)
	for _, h := range s.members(of) {
		id, status, impact := h.Self.Value, "COMPLIANT", "NO_IMPACT"
		if h.Software.Follows(d) {
			good = append(good, id)
		} else {
			bad = append(bad, id)
			status, impact = "NON_COMPLIANT", "REBOOT_REQUIRED"
		}
		info[id] = map[string]any{"name": h.Spec.Name}
		hosts[id] = s.hostCompliance(status, impact)
	}
	out := map[string]any{"status": "COMPLIANT", "impact": "NO_IMPACT", "compliant_hosts": good,
		"non_compliant_hosts": bad, "incompatible_hosts": []string{}, "unavailable_hosts": []string{},
		"notifications": map[string]any{}, "scan_time": s.now(), "hosts": hosts, "host_info": info}
	if len(bad) > 0 {
		out["status"], out["impact"] = "NON_COMPLIANT", "REBOOT_REQUIRED"
	}
	return out
}

// hostCompliance is the compliance of a host.
// Ours: base image and add-on always comply; components are not listed.
func (s *Service) hostCompliance(status, impact string) map[string]any {
	base, none := map[string]any{"version": s.baseImage()}, map[string]any{}
	return map[string]any{"status": status, "impact": impact, "scan_time": s.now(), "notifications": none,
		"base_image": map[string]any{"status": "COMPLIANT", "current": base, "target": base, "notifications": none},
		"add_on":     map[string]any{"status": "COMPLIANT", "notifications": none},
		"components": none, "solutions": none}
}

// restDrafts answers the calls to the image drafts of a cluster.
// VMware: vSphere Automation API reference, software/drafts: create, list, get, delete, validate, commit.
// Ours: owner and status are constants.
func (s *Service) restDrafts(out http.ResponseWriter, r *http.Request, cluster vcsim.Ref, words []string) {
	s.mu.Lock()
	open := s.drafts[cluster]
	s.mu.Unlock()
	switch {
	case len(words) == 0 && r.Method == http.MethodPost:
		s.openDraft(out, cluster)
	case len(words) == 0:
		list := map[string]any{}
		if open != nil {
			list[open.id] = map[string]any{"owner": "lab", "status": "VALID"}
		}
		restReply(out, list)
	case open == nil || open.id != words[0]:
		restError(out, http.StatusNotFound, "NOT_FOUND", "The draft '"+words[0]+"' does not exist.")
	case len(words) == 1 && r.Method == http.MethodDelete:
		s.closeDraft(cluster)
		out.WriteHeader(http.StatusNoContent)
	case len(words) == 1 && r.Method == http.MethodPost:
		s.endDraft(out, r.URL.Query().Get("action"), cluster, open)
	case len(words) == 1:
		restReply(out, map[string]any{"metadata": map[string]any{"owner": "lab", "status": "VALID"},
			"software": s.software(*open)})
	case len(words) == 3 && words[1] == "software" && (words[2] == "base-image" || words[2] == "add-on"):
		s.draftParts(out, r, open, words[2])
	case len(words) >= 3 && words[1] == "software" && words[2] == "components":
		s.draftComponents(out, r, open, words[3:])
	default:
		restError(out, http.StatusNotFound, "NOT_FOUND", r.URL.Path+" is not simulated.")
	}
}

// openDraft opens the draft of a cluster, which can have only one.
// Ours: NOT_ALLOWED_IN_CURRENT_STATE if a draft is already open (unproven).
func (s *Service) openDraft(out http.ResponseWriter, cluster vcsim.Ref) {
	state := s.clusters.State(cluster)
	components := maps.Clone(state.Components)
	if components == nil {
		components = map[string]string{}
	}
	s.mu.Lock()
	_, busy := s.drafts[cluster]
	id := ""
	if !busy {
		s.counter++
		id = strconv.Itoa(s.counter)
		s.drafts[cluster] = &imageDraft{id: id, components: components, base: state.BaseImage, addOn: state.AddOn}
	}
	s.mu.Unlock()
	if busy {
		restError(out, http.StatusBadRequest, "NOT_ALLOWED_IN_CURRENT_STATE",
			"Another draft of the cluster's image is open.")
		return
	}
	restCreated(out, id)
}

// closeDraft discards the draft of a cluster.
func (s *Service) closeDraft(cluster vcsim.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.drafts, cluster)
}

// endDraft validates or commits a draft, each as a task. A component that is in no depot is an error.
// VMware: vSphere Automation API reference, actions validate and commit.
// Ours: the texts of errors.
func (s *Service) endDraft(out http.ResponseWriter, action string, of vcsim.Ref, open *imageDraft) {
	missing := s.missing(open)
	switch action {
	case "validate":
		errors := []any{}
		for _, text := range missing {
			errors = append(errors, map[string]any{"id": "lab.component", "time": "2026-01-15T00:00:00.000Z",
				"message": restMessage("lab.component", text)})
		}
		restStarted(out, s.restDone(map[string]any{
			"notifications": map[string]any{"errors": errors, "warnings": []any{}, "info": []any{}}}, ""))
	case "commit":
		if len(missing) > 0 {
			restStarted(out, s.restDone(nil, missing[0]))
			return
		}
		s.mu.Lock()
		draft := *open
		delete(s.drafts, of)
		s.mu.Unlock()
		s.clusters.Change(of, func(state *cluster.State) {
			state.Components, state.BaseImage, state.AddOn = draft.components, draft.base, draft.addOn
		})
		restStarted(out, s.restDone(open.id, ""))
	default:
		restError(out, http.StatusBadRequest, "UNSUPPORTED", "The action '"+action+"' is not simulated.")
	}
}

// missing returns the components of a draft that are in no depot.
func (s *Service) missing(open *imageDraft) []string {
	held := s.depotComponents()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(open.components)) {
		if !slices.Contains(held[name], open.components[name]) {
			out = append(out, "Component "+name+" with version "+open.components[name]+" cannot be found in depot.")
		}
	}
	if open.addOn.Name != "" && !slices.Contains(held[open.addOn.Name], open.addOn.Version) {
		out = append(out, "Add-on "+open.addOn.Name+" with version "+open.addOn.Version+" cannot be found in depot.")
	}
	if open.base != "" && open.base != s.baseImage() && !slices.Contains(held["ESXi"], open.base) {
		out = append(out, "Base image with version "+open.base+" cannot be found in depot.")
	}
	return out
}

// draftParts sets the base image of a draft, and sets or removes its add-on.
// VMware: vSphere Automation SDK, software/drafts/DRAFT/software: base-image with version, add-on with name and
// version.
func (s *Service) draftParts(out http.ResponseWriter, r *http.Request, open *imageDraft, part string) {
	var spec cluster.AddOn
	if r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&spec); err != nil {
			restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if part == "base-image" {
		open.base = spec.Version
	} else {
		open.addOn = spec
	}
	out.WriteHeader(http.StatusNoContent)
}

// componentChange is a change of a draft's components.
type componentChange struct {
	Version string            `json:"version"`
	Set     map[string]string `json:"components_to_set"`
	Delete  []string          `json:"components_to_delete"`
}

// readChange reads the change in a request; the path may name one component.
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

// draftComponents reads and changes the components of a draft, individually or together.
// VMware: vSphere Automation API reference, software/drafts/DRAFT/software/components: PUT, DELETE, PATCH.
func (s *Service) draftComponents(out http.ResponseWriter, r *http.Request, open *imageDraft, words []string) {
	c, err := readChange(r, words)
	if err != nil {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	s.mu.Lock()
	next := maps.Clone(open.components)
	maps.Copy(next, c.Set)
	for _, name := range c.Delete {
		delete(next, name)
	}
	open.components = next
	s.mu.Unlock()
	if r.Method != http.MethodGet {
		out.WriteHeader(http.StatusNoContent)
		return
	}
	s.showComponents(out, next, words)
}

// showComponents returns all components of a draft, or the named one.
// VMware: vSphere Automation API reference, software/drafts/DRAFT/software/components: GET.
func (s *Service) showComponents(out http.ResponseWriter, components map[string]string, words []string) {
	shown := s.software(imageDraft{components: components})["components"].(map[string]any)
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
