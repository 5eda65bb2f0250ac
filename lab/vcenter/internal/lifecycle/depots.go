package lifecycle

import (
	"encoding/json"
	"net/http"
	"slices"
)

// offlineDepot is an imported offline bundle.
type offlineDepot struct {
	location, description string
}

// offline lists the imported offline depots, and imports one from a URL.
// VMware: vSphere Automation SDK, com.vmware.esx.settings.depots.Offline: Summary, CreateSpec with PULL, CreateResult;
// AlreadyExists if the content exists.
// Ours: the URLs are those of the description's depots.
func (s *Service) offline(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.listOffline(out)
		return
	}
	var spec struct {
		SourceType  string `json:"source_type"`
		Location    string `json:"location"`
		Description string `json:"description"`
	}
	if err := json.NewDecoder(r.Body).Decode(&spec); err != nil || spec.SourceType != "PULL" || spec.Location == "" {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", "The location of a PULL depot is required.")
		return
	}
	for _, d := range s.sim.Description.Depots {
		if slices.Contains(d.Paths, spec.Location) {
			s.mu.Lock()
			s.counter++
			id := spec.Location
			s.depots[id] = offlineDepot{location: spec.Location, description: spec.Description}
			s.mu.Unlock()
			restStarted(out, s.restDone(map[string]any{"depot": id}, ""))
			return
		}
	}
	restStarted(out, s.restDone(nil, "Cannot download the bundle from "+spec.Location+"."))
}

// listOffline lists the imported offline depots.
// VMware: vSphere Automation SDK, com.vmware.esx.settings.depots.Offline.Summary.
func (s *Service) listOffline(out http.ResponseWriter) {
	list := map[string]any{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.depots {
		list[id] = map[string]any{"source_type": "PULL", "location": d.location, "description": d.description}
	}
	restReply(out, list)
}

// hasImported reports whether one of these paths was imported.
func (s *Service) hasImported(paths []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(paths, func(path string) bool { _, ok := s.depots[path]; return ok })
}
