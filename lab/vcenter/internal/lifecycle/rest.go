// Package lifecycle simulates the image-managed clusters (vLCM): images, drafts, compliance.
//
// vcsim: one image and one draft for all clusters, not used here; it answers all other REST calls.
package lifecycle

import (
	"encoding/json"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// The paths of clusters, tasks and offline depots in the REST API.
const (
	restBase    = "/api/esx/settings/clusters/"
	tasksBase   = "/api/cis/tasks"
	offlineBase = "/api/esx/settings/depots/offline"
)

// Service answers the REST calls of image-managed clusters.
type Service struct {
	sim      *vcsim.Sim
	hosts    *esxi.Hosts
	clusters *cluster.Clusters

	mu      sync.Mutex
	counter int
	tasks   map[string]map[string]any // replaced, never modified in place
	drafts  map[vcsim.Ref]*imageDraft // changes of images that are not committed yet, by cluster
	busy    map[vcsim.Ref]string      // the tasks that change hosts, by cluster
	depots  map[string]offlineDepot   // the imported offline depots
}

// New returns the service without open drafts.
func New(sim *vcsim.Sim, hosts *esxi.Hosts, clusters *cluster.Clusters) *Service {
	return &Service{sim: sim, hosts: hosts, clusters: clusters, tasks: map[string]map[string]any{},
		drafts: map[vcsim.Ref]*imageDraft{}, busy: map[vcsim.Ref]string{}, depots: map[string]offlineDepot{}}
}

// OwnsREST reports whether this package answers a REST path; vcsim has one draft and one image for all clusters.
func (*Service) OwnsREST(path string) bool {
	return strings.HasPrefix(path, restBase) || strings.HasPrefix(path, tasksBase) ||
		path == offlineBase
}

// ServeREST answers the REST calls of image-managed clusters (vLCM), their tasks and the offline depots.
// VMware: vSphere Automation API reference, /api/esx/settings/clusters, /api/cis/tasks, /api/esx/settings/depots.
func (s *Service) ServeREST(out http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == tasksBase:
		s.restTasks(out, r)
		return
	case strings.HasPrefix(r.URL.Path, tasksBase+"/"):
		s.restTask(out, strings.TrimPrefix(r.URL.Path, tasksBase+"/"))
		return
	case r.URL.Path == offlineBase:
		s.offline(out, r)
		return
	}
	words := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, restBase), "/"), "/")
	cluster := vcsim.Ref{Type: "ClusterComputeResource", Value: words[0]}
	if s.sim.Registry.Get(cluster) == nil {
		restError(out, http.StatusNotFound, "NOT_FOUND", "The cluster '"+words[0]+"' does not exist.")
		return
	}
	s.serveCluster(out, r, cluster, words)
}

// serveCluster answers the calls to one cluster; without an image, most return NOT_ALLOWED_IN_CURRENT_STATE.
// VMware: vSphere Automation API reference, paths below /api/esx/settings/clusters/CLUSTER/software.
// Ours: the kind of error (unproven).
func (s *Service) serveCluster(out http.ResponseWriter, r *http.Request, cluster vcsim.Ref, words []string) {
	area := strings.Join(words[1:min(len(words), 3)], "/")
	switch {
	case area == "enablement/software":
		s.restEnablement(out, r, cluster)
	case area == "enablement/configuration":
		restReply(out, map[string]any{"enabled": s.clusters.State(cluster).ConfigProfile})
	case !s.clusters.State(cluster).ImageManaged:
		restError(out, http.StatusBadRequest, "NOT_ALLOWED_IN_CURRENT_STATE",
			"The cluster '"+words[0]+"' is not managed with a single image.")
	case area == "software" && r.Method == http.MethodPost:
		s.softwareAction(out, r, cluster)
	case area == "software":
		restReply(out, s.imageOf(cluster))
	case strings.HasSuffix(r.URL.Path, "/policies/apply/effective"):
		s.policy(out, cluster)
	case area == "software/components":
		restReply(out, s.imageOf(cluster)["components"])
	case area == "software/compliance":
		restReply(out, s.compliance(cluster))
	case area == "software/drafts":
		s.restDrafts(out, r, cluster, words[3:])
	default:
		restError(out, http.StatusNotFound, "NOT_FOUND", r.URL.Path+" is not simulated.")
	}
}

// restReply sends an answer as JSON.
func restReply(out http.ResponseWriter, value any) { restStatus(out, http.StatusOK, value) }

// restCreated sends the identifier of a new object.
func restCreated(out http.ResponseWriter, id string) { restStatus(out, http.StatusCreated, id) }

// restStarted sends the identifier of a task.
func restStarted(out http.ResponseWriter, task string) { restStatus(out, http.StatusAccepted, task) }

// restStatus sends an answer as JSON, with a status.
func restStatus(out http.ResponseWriter, status int, value any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	if err := json.NewEncoder(out).Encode(value); err != nil {
		log.Printf("REST answer not delivered: %v", err)
	}
}

// restError sends an error in the format of the Automation API: error_type and messages.
func restError(out http.ResponseWriter, status int, kind, text string) {
	restStatus(out, status, map[string]any{"error_type": kind, "messages": []any{restMessage("lab.rest", text)}})
}

func restMessage(id, text string) map[string]any {
	return map[string]any{"id": id, "default_message": text, "localized": text, "args": []string{}}
}

// restEnablement returns whether an image manages the cluster, and enables the image.
// VMware: vSphere Automation API reference, /api/esx/settings/clusters/CLUSTER/enablement/software.
func (s *Service) restEnablement(out http.ResponseWriter, r *http.Request, cluster vcsim.Ref) {
	switch r.Method {
	case http.MethodGet:
		restReply(out, map[string]any{"enabled": s.clusters.State(cluster).ImageManaged})
	case http.MethodPut:
		s.clusters.SetImageManaged(cluster, true)
		restStarted(out, s.restDone(nil, ""))
	default:
		restError(out, http.StatusBadRequest, "UNSUPPORTED", r.Method+" is not simulated.")
	}
}

// depotComponents returns the versions of each component in the depots of the description that vCenter has.
func (s *Service) depotComponents() map[string][]string {
	out := map[string][]string{}
	for _, d := range s.sim.Description.Depots {
		if d.Unimported && !s.hasImported(d.Paths) {
			continue
		}
		for _, v := range d.VIBs {
			if v.Component != "" && !slices.Contains(out[v.Component], v.Version) {
				out[v.Component] = append(out[v.Component], v.Version)
			}
		}
	}
	return out
}
